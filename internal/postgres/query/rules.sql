-- name: RuleList :many
select sqlc.embed(r), s.armed_since_ns,
       array(select rw.webhook_id from rule_webhook rw where rw.rule_id = r.rule_id order by rw.position)::uuid[] as webhook_ids
from rule r
join rule_state s using (rule_id)
where r.tenant_id = @tenant_id and r.deleted_at is null
  and (sqlc.narg(after_name)::text is null
       or (r.name collate "C", r.rule_id) > (sqlc.narg(after_name)::text collate "C", @after_id::uuid))
order by r.name collate "C", r.rule_id
limit @most::int;

-- name: RuleNames :many
select rule_id, name, enabled
from rule
where tenant_id = @tenant_id and deleted_at is null
order by name collate "C", rule_id;

-- name: RuleGet :one
select sqlc.embed(r), s.armed_since_ns,
       array(select rw.webhook_id from rule_webhook rw where rw.rule_id = r.rule_id order by rw.position)::uuid[] as webhook_ids
from rule r
join rule_state s using (rule_id)
where r.tenant_id = @tenant_id and r.rule_id = @rule_id and r.deleted_at is null;

-- name: RuleHealth :many
select p.rule_id, p.cursor, p.backfill_from_ns, p.backfill_cursor_ns, p.position, p.until, p.failing, p.armed_since_ns, p.partition,
       p.last_run_at, p.committed_at, p.problem, p.problem_at,
       (p.late_dropped + coalesce((select sum(d.exchanges) from late_dropped d where d.rule_id = p.rule_id), 0))::bigint as late_dropped,
       (extract(epoch from now()) * 1e9)::bigint as now_ns,
       r.enabled, r.fire_mode, r.interval_seconds, r.look_back_seconds,
       exists (select from rule_failing f where f.rule_id = p.rule_id) as announced,
       (select count(*) from alert a
        where a.rule_id = p.rule_id and a.late and a.fired_at > now() - interval '1 hour') as late_last_hour
from rule_progress p
join rule r using (rule_id)
where r.tenant_id = @tenant_id and p.rule_id = any(@rule_ids::uuid[]) and r.deleted_at is null;

-- name: RuleInsert :exec
insert into rule (rule_id, tenant_id, name, enabled, fire_mode, severity, scope, filter, title_template, message_template,
                  targets, interval_seconds, look_back_seconds, re_notify_minutes, for_duration_seconds,
                  threshold, window_seconds, measure, absence, group_by, group_attribute, notify_on_resolve, about, use_routing_policy, resolution)
values (@rule_id, @tenant_id, @name, @enabled, @fire_mode, @severity, @scope, @filter, @title_template, @message_template,
        @targets, @interval_seconds, @look_back_seconds, @re_notify_minutes, @for_duration_seconds,
        @threshold, @window_seconds, @measure, @absence, @group_by, @group_attribute, @notify_on_resolve, @about, @use_routing_policy, @resolution);

-- name: RuleStateInsert :exec
insert into rule_state (rule_id, armed_since_ns) values (@rule_id, @armed_since_ns);

-- name: RuleLock :one
-- The lock on the rule does not block foreign keys that refer to it.
select r.version, r.enabled, r.fire_mode, r.scope, r.filter, r.look_back_seconds, s.armed_since_ns, s.former, s.swept_before_ns, b.position
from rule r
join rule_state s using (rule_id)
left join rule_backfill b using (rule_id)
where r.tenant_id = @tenant_id and r.rule_id = @rule_id and r.deleted_at is null
for no key update of r, s;

-- name: RuleUpdate :exec
update rule
set name = @name, enabled = @enabled, fire_mode = @fire_mode, severity = @severity, scope = @scope, filter = @filter,
    title_template = @title_template, message_template = @message_template, targets = @targets,
    interval_seconds = @interval_seconds, look_back_seconds = @look_back_seconds,
    re_notify_minutes = @re_notify_minutes, for_duration_seconds = @for_duration_seconds,
    threshold = @threshold, window_seconds = @window_seconds, measure = @measure, absence = @absence,
    group_by = @group_by, group_attribute = @group_attribute, notify_on_resolve = @notify_on_resolve, about = @about, use_routing_policy = @use_routing_policy, resolution = @resolution,
    version = version + 1, updated_at = now()
where rule_id = @rule_id;

-- name: RuleSetEnabled :exec
update rule set enabled = @enabled, version = version + 1, updated_at = now() where rule_id = @rule_id;

-- name: RuleArm :exec
-- Arms a rule again: exchanges that ended before that instant are not evaluated.
update rule_state
set armed_since_ns = @armed_since_ns, former = '[]', problem = null, problem_at = null
where rule_id = @rule_id;

-- name: RuleClearProblem :exec
update rule_state set problem = null, problem_at = null where rule_id = @rule_id;

-- name: RuleTurn :exec
-- Starts an era: another condition evaluates what ends from now on.
update rule_state
set armed_since_ns = @armed_since_ns, former = @former, problem = null, problem_at = null
where rule_id = @rule_id;

-- name: RuleDelete :execrows
update rule set deleted_at = now(), enabled = false, version = version + 1
where tenant_id = @tenant_id and rule_id = @rule_id and deleted_at is null;

-- name: RuleStateDelete :exec
delete from rule_state where rule_id = @rule_id;

-- name: RuleWebhookDelete :exec
-- Removes all webhooks of a rule, except some.
delete from rule_webhook where rule_id = @rule_id and not (webhook_id = any(coalesce(@keep::uuid[], '{}')));

-- name: WebhookShare :many
-- Locks the webhooks that a rule is about to use, so that they cannot be deleted.
select webhook_id from webhook
where tenant_id = @tenant_id and webhook_id = any(@webhook_ids::uuid[]) and deleted_at is null
for share;

-- name: RuleWebhookInsert :exec
insert into rule_webhook (rule_id, webhook_id, position)
select @rule_id, w.webhook_id, w.position
from unnest(@webhook_ids::uuid[]) with ordinality as w (webhook_id, position)
on conflict (rule_id, webhook_id) do update set position = excluded.position where rule_webhook.position <> excluded.position;

-- name: PartitionsShare :exec
-- Keeps tenants in their partitions until the transaction ends.
select pg_advisory_xact_lock_shared(hashtext('tocsin partitions'), 0);

-- name: TenantAssign :exec
-- Assigns a tenant to the partition of its share, unless it has one. The hash is the xxHash64 of
-- the tenant's name, in decimal.
insert into tenant_partition (tenant_id, partition)
select @tenant_id, c.partition from checkpoint c
where c.share_of > 0 and c.share_index = mod((@hash::text)::numeric, greatest(c.share_of, 1))
on conflict do nothing;

-- name: PartitionChange :one
-- Begins a change of rules. It locks their partition against commits and other changes, and gives
-- the change its rules revision. The revision is at least Postgres's clock in microseconds, so that
-- a failover that loses changes never leads to the same revision again. The instant is by the
-- source's clock, unless that is ahead.
update checkpoint c
set rules_revision = greatest(c.rules_revision + 1, (extract(epoch from clock_timestamp()) * 1000000)::bigint)
from tenant_partition t
where t.tenant_id = @tenant_id and c.partition = t.partition
returning c.partition, c.rules_revision, c.cursor, c.backfill_from_ns, c.backfill_cursor_ns,
          ((extract(epoch from clock_timestamp()) * 1000000)::bigint * 1000 + least(c.clock_offset_ns, 0))::bigint as now_ns;

-- name: RuleChanged :exec
insert into partition_rule (partition, rule_id, changed) values (@partition, @rule_id, @changed)
on conflict (partition, rule_id) do update set changed = excluded.changed;
