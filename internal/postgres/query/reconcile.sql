-- name: RuleReconcilable :one
select sqlc.embed(r), p.armed_since_ns, p.former, p.swept_before_ns,
       p.cursor, p.backfill_from_ns, p.backfill_cursor_ns, p.position, p.until, p.failing, c.comparison,
       (extract(epoch from now()) * 1e9)::bigint as now_ns
from rule r join rule_progress p using (rule_id) left join rule_comparison c on c.rule_id = r.rule_id
where r.tenant_id = @tenant_id and r.rule_id = @rule_id and r.deleted_at is null;

-- name: RuleComparisonWrite :exec
-- Stores what a comparison leaves for the next ones. A rule that was deleted has none.
insert into rule_comparison (rule_id, comparison)
select s.rule_id, @comparison from rule_state s where s.rule_id = @rule_id
on conflict (rule_id) do update set comparison = excluded.comparison;

-- name: RulesReconcilable :many
-- Returns the enabled rules, in a fixed order.
select r.tenant_id, r.rule_id, r.fire_mode
from rule r
where r.enabled and r.deleted_at is null and r.rule_id > @after::uuid
order by r.rule_id
limit @most::int;

-- name: WindowProgress :one
-- Returns how a window rule was evaluated, in nanoseconds; 0 if unknown. The values about absence
-- are watermarks. The others are by the source's clock.
select coalesce(extract(epoch from s.last_run_at) * 1e9 + c.clock_offset_ns, 0)::bigint as until_ns,
       coalesce(extract(epoch from s.evaluated_since) * 1e9 + c.clock_offset_ns, 0)::bigint as since_ns,
       (extract(epoch from r.updated_at) * 1e9 + coalesce(c.clock_offset_ns, 0))::bigint as edited_ns,
       coalesce(c.clock_offset_ns, 0)::bigint as clock_offset_ns, coalesce(c.late_ns, 0)::bigint as late_ns,
       coalesce(c.watched_since_ns, 0)::bigint as watched_since_ns, coalesce(c.absence_judged_ns, 0)::bigint as judged_ns
from rule r
join rule_state s using (rule_id)
left join tenant_partition t using (tenant_id)
left join checkpoint c using (partition)
where r.rule_id = @rule_id;

-- name: WindowAlerts :many
-- Returns the alerts of a window rule that are open or held, and those that were until an instant,
-- newest first. They have no execution id, by which an index finds them.
select alert_id, rule_version, group_key::text as group_key, state, count, fired_at, resolved_at, resolved_by, held, held_until
from alert
where rule_id = @rule_id and execution_id is null and group_key is not null
  and (state <> 'RESOLVED' or held or resolved_at >= @since::timestamptz or held_until >= @since::timestamptz)
order by (state <> 'RESOLVED' or held) desc, fired_at desc, alert_id desc
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
  and coalesce((a.exchange ->> 'endTimeNs')::bigint, a.start_time_ns) < @to_ns::bigint
  and coalesce((a.exchange ->> 'endTimeNs')::bigint, a.start_time_ns) <= a.start_time_ns + @longest_ns::bigint
  and a.start_time_ns >= coalesce((select s.swept_before_ns from rule_state s where s.rule_id = @rule_id), 0);

-- name: ReconcileTryLock :one
-- The session holds the lock until it releases the lock or ends.
select pg_try_advisory_lock(hashtext('tocsin reconciliation'), 0) as locked;

-- name: ReconcileUnlock :exec
select pg_advisory_unlock(hashtext('tocsin reconciliation'), 0);

-- name: ReconcileDue :one
-- Returns the rule after which to begin. Returns no row while the last pass is younger than a time.
select coalesce((select next_after from reconciliation), '00000000-0000-0000-0000-000000000000'::uuid)::uuid as next_after
where not exists (select from reconciliation where at > now() - @every::interval);

-- name: ReconcileDone :exec
-- Stores a pass. A pass after which no rule is left ends a round.
insert into reconciliation as r (at, rules, missing, next_after, round_rules, round_missing, round_began_at, whole_since)
values (now(), @rules::bigint, @missing::bigint, @next_after::uuid,
        case when @whole::boolean then 0 else @rules::bigint end, case when @whole::boolean then 0 else @missing::bigint end,
        case when not @whole::boolean then now() - @took::interval end, case when @whole::boolean then now() - @took::interval end)
on conflict (only_row) do update
set at = now(), next_after = @next_after::uuid,
    rules = case when @whole::boolean then r.round_rules + @rules::bigint else greatest(r.rules, r.round_rules + @rules::bigint) end,
    missing = case when @whole::boolean then r.round_missing + @missing::bigint else greatest(r.missing, r.round_missing + @missing::bigint) end,
    round_rules = case when @whole::boolean then 0 else r.round_rules + @rules::bigint end,
    round_missing = case when @whole::boolean then 0 else r.round_missing + @missing::bigint end,
    round_began_at = case when not @whole::boolean then coalesce(r.round_began_at, now() - @took::interval) end,
    whole_since = case when @whole::boolean then coalesce(r.round_began_at, now() - @took::interval) else r.whole_since end;

-- name: ReconciliationRead :many
-- Returns the result of the comparisons of all rules with the source; no row before the first one.
select rules, missing, at, whole_since from reconciliation;

-- name: Gauges :one
-- Returns the measurements over all tenants, except those of the outbox and the partitions. A
-- partition without a commit has waited since the first of its rules was armed.
select coalesce((select missing from reconciliation), 0)::bigint as missing,
       coalesce((select rules from reconciliation), 0)::bigint as reconciled_rules,
       coalesce((select extract(epoch from at) from reconciliation), 0)::double precision as reconciled_at,
       (select count(*) from webhook_state s join webhook w using (webhook_id)
        where s.opened_at is not null and w.enabled and w.deleted_at is null) as open_breakers,
       (select count(*) from webhook w where not w.enabled and w.disabled_reason <> '' and w.deleted_at is null) as webhooks_off,
       coalesce((select extract(epoch from whole_since) from reconciliation), 0)::double precision as reconciled_since,
       coalesce((select extract(epoch from at) from retention_pass), 0)::double precision as retention_at,
       coalesce((select exchanges from late_dropped_total), 0)::bigint as late_dropped,
       (select count(*) from rule_backfill b join rule r using (rule_id) where r.enabled and r.deleted_at is null) as backfills,
       coalesce((select min(b.position) from rule_backfill b join rule r using (rule_id)
                 where r.enabled and r.deleted_at is null and not b.failing), '')::text as slowest,
       coalesce((select max(extract(epoch from now()) - coalesce(extract(epoch from c.committed_at), (
                     select min(s.armed_since_ns) / 1e9 from tenant_partition t join rule r using (tenant_id) join rule_state s using (rule_id)
                     where t.partition = c.partition and r.enabled and r.deleted_at is null)))
                 from checkpoint c
                 where exists (select from tenant_partition t join rule r using (tenant_id)
                               where t.partition = c.partition and r.enabled and r.deleted_at is null
                                 and not exists (select from rule_failing f where f.rule_id = r.rule_id))), 0)::double precision as commit_age,
       exists (select from announcement a
               where a.subject = 'source' or exists (select from rule r where a.subject = 'source of ' || r.tenant_id and r.enabled and r.deleted_at is null)
       ) as source_failing,
       (select count(*) from rule_failing) as rules_failing,
       (select count(*) from settlement where status in ('FAILED', 'EXHAUSTED')) as dead_letters,
       (select count(*) from replica where beat_at > now() - @dead_after::interval) as replicas_alive,
       (select count(*) from replica where beat_at <= now() - @dead_after::interval) as replicas_dead,
       (extract(epoch from now()) * 1e9)::bigint as now_ns;

-- name: LateDroppedTotalLock :exec
-- Lets no other transaction count late-dropped exchanges until the end of this one.
select from late_dropped_total for update;

-- name: LateDroppedWrite :exec
-- Stores how many exchanges became visible beyond the look-back, and adds what is new to the total.
-- Each comparison that covers an hour counts it again. A row that retention has deleted since does
-- not lower the number. The total must be locked.
with found as (
    select w.hour_ns, w.exchanges, w.exchanges - coalesce(d.exchanges, 0) as more
    from (select unnest(@hours_ns::bigint[]) as hour_ns, unnest(@exchanges::bigint[]) as exchanges) w
    left join late_dropped d on d.rule_id = @rule_id and d.hour_ns = w.hour_ns
), written as (
    insert into late_dropped (rule_id, hour_ns, exchanges)
    select @rule_id, hour_ns, exchanges from found where more > 0
    on conflict (rule_id, hour_ns) do update set exchanges = excluded.exchanges
)
update late_dropped_total t
set exchanges = t.exchanges + s.more
from (select sum(more)::bigint as more from found where more > 0) s
where s.more > 0;

-- name: LateDroppedAdd :exec
-- Adds exchanges that became visible beyond the look-back, which are counted only once. The total
-- must be locked. A rule that was deleted has no count.
with counted as (
    update rule_state s set late_dropped = s.late_dropped + @exchanges::bigint
    where s.rule_id = @rule_id
    returning s.rule_id
)
update late_dropped_total t set exchanges = t.exchanges + @exchanges::bigint
where exists (select from counted);

-- name: LateDroppedFold :exec
-- Adds up the hours that no comparison covers any more.
with old as (
    delete from late_dropped d
    where d.hour_ns < (extract(epoch from now() - interval '30 days') * 1e9)::bigint
    returning d.rule_id, d.exchanges
)
update rule_state s
set late_dropped = s.late_dropped + o.exchanges
from (select rule_id, sum(exchanges)::bigint as exchanges from old group by rule_id) o
where s.rule_id = o.rule_id;
