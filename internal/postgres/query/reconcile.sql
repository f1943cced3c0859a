-- name: RuleReconcilable :one
select sqlc.embed(r), s.armed_since_ns, s.former, s.cursor
from rule r join rule_state s using (rule_id)
where r.tenant_id = @tenant_id and r.rule_id = @rule_id and r.deleted_at is null;

-- name: RulesReconcilable :many
-- The enabled rules that can be reconciled, in a fixed order.
select r.tenant_id, r.rule_id
from rule r
where r.enabled and r.deleted_at is null and r.fire_mode = 'PER_EXCHANGE' and r.rule_id > @after::uuid
order by r.rule_id
limit @most::int;

-- name: KeysWithoutAlert :many
select k.key::text as key
from unnest(@keys::text[]) with ordinality as k (key, position)
where not exists (select from alert a where a.rule_id = @rule_id and a.execution_id = k.key collate "C")
order by k.position;

-- name: AlertsEnded :one
select count(*)
from alert a
where a.rule_id = @rule_id and a.execution_id is not null
  and coalesce((a.exchange ->> 'endTimeNs')::bigint, a.start_time_ns) >= @from_ns::bigint
  and coalesce((a.exchange ->> 'endTimeNs')::bigint, a.start_time_ns) < @to_ns::bigint;
