-- name: CheckpointsFor :many
-- Returns the partitions that a replica holds or may take, and what it needs to know of the other
-- replicas: those that asked for partitions within the length of a lease. Returns at least one row.
-- A silent owner holds nothing, nor does one whose heartbeat lies ahead, because this clock was set back and
-- the owner has not sent another one since. Also records that this replica asks, unless it did so recently.
with asked as (
    update replica set evaluated_at = now()
    where replica_id = @replica::text and coalesce(evaluated_at <= now() - @note_after::interval, true)
), known as (
    select count(*) filter (where r.replica_id <> @replica::text) as others,
           count(*) filter (where r.replica_id < @replica::text) as before,
           (select count(*) from checkpoint) as partitions,
           -- One about all tenants is of a previous version.
           (case when exists (select from announcement) then array(
               select t.partition from announcement a join tenant_partition t on a.subject = 'source of ' || t.tenant_id
               union select o.partition from checkpoint o where exists (select from announcement where subject = 'source')
           ) else '{}' end)::integer[] as source_failed
    from replica r
    where r.evaluated_at > now() - @lease_for::interval and r.beat_at > now() - @dead_after::interval and r.beat_at <= now() + @dead_after::interval
)
select sqlc.embed(c), coalesce(c.owner = @replica::text, false)::boolean as held,
       coalesce(extract(epoch from c.lease_until - now()), 0)::double precision as lease_left_seconds,
       (c.owner is null or c.owner <> @replica::text and (c.lease_until <= now() or exists (
           select from replica r where r.replica_id = c.owner and (r.beat_at <= now() - @dead_after::interval or r.beat_at > now() + @dead_after::interval))))::boolean as free,
       k.partitions, k.others, k.before, k.source_failed, now()::timestamptz as now
from checkpoint c
cross join known k
where c.owner is null or c.owner = @replica::text or c.lease_until <= now()
   or exists (select from replica r where r.replica_id = c.owner and (r.beat_at <= now() - @dead_after::interval or r.beat_at > now() + @dead_after::interval))
   or c.partition = (select min(partition) from checkpoint)
order by c.partition;

-- name: CheckpointTake :many
-- Takes at most a number of the partitions that are still free. Skips locked rows: another replica may
-- be taking one, or somebody's transaction may be open.
with free as (
    select c.partition, t.token
    from (select unnest(@partitions::integer[]) as partition, unnest(@tokens::bigint[]) as token) t
    join checkpoint c using (partition)
    where c.owner is null or c.lease_until <= now()
       or exists (select from replica r where r.replica_id = c.owner and (r.beat_at <= now() - @dead_after::interval or r.beat_at > now() + @dead_after::interval))
    order by c.partition limit @most
    for update of c skip locked
)
update checkpoint c
set owner = @replica::text, token = free.token, lease_until = now() + @lease_for::interval
from free
where c.partition = free.partition
returning sqlc.embed(c);

-- name: CheckpointRenew :many
-- Renews leases that no other replica has taken, and returns the partitions that the replica holds.
-- A checkpoint that another transaction has locked keeps its lease as it is, so that it does not cost
-- the replica its other partitions: a commit renews the lease itself.
with mine as (
    select partition from checkpoint
    where partition = any(@partitions::integer[]) and owner = @replica::text
    for update skip locked
), renewed as (
    update checkpoint c
    set lease_until = now() + @lease_for::interval
    from mine
    where c.partition = mine.partition
)
select partition from checkpoint
where partition = any(@partitions::integer[]) and owner = @replica::text;

-- name: CheckpointRelease :exec
-- Releases partitions, and gives up the share of a replica that does not evaluate any more. A
-- checkpoint that another transaction has locked is left for the next time; a replica that stops
-- releases it when it leaves.
with mine as (
    select partition from checkpoint
    where partition = any(@partitions::integer[]) and owner = @replica::text
    for update skip locked
), ended as (
    update replica set evaluated_at = null where replica_id = @replica::text and @ends::boolean
)
update checkpoint c
set owner = null, token = null, lease_until = null
from mine
where c.partition = mine.partition;

-- name: RulesRevision :one
select rules_revision from checkpoint where partition = @partition;

-- name: RulesChanged :many
-- Returns the enabled rules of a partition that changed after a rules revision.
select sqlc.embed(r), s.armed_since_ns, s.former, s.problem,
       array(select rw.webhook_id from rule_webhook rw where rw.rule_id = r.rule_id order by rw.position)::uuid[] as webhook_ids
from partition_rule p
join rule r using (rule_id)
join rule_state s using (rule_id)
join tenant_partition t on t.tenant_id = r.tenant_id and t.partition = p.partition
where p.partition = @partition and p.changed > @after::bigint and r.enabled and r.deleted_at is null;

-- name: RulesRemoved :many
-- Returns the other rules that changed: those that are disabled, deleted, or now in another
-- partition.
select p.rule_id
from partition_rule p
join rule r using (rule_id)
join tenant_partition t using (tenant_id)
where p.partition = @partition and p.changed > @after::bigint
  and not (r.enabled and r.deleted_at is null and t.partition = p.partition);

-- name: RuleBackfills :many
select b.rule_id, b.position, b.until, b.failing, b.refused_from_ns, b.refused_to_ns
from rule_backfill b
join rule r using (rule_id)
join tenant_partition t using (tenant_id)
where t.partition = @partition and r.enabled and r.deleted_at is null
order by b.rule_id;

-- name: CheckpointCommit :one
-- The first statement of a commit: compare-and-set. If it returns no row, the checkpoint is not the
-- one that the batch was made from, and nothing is written. The row stays locked until the
-- transaction ends, which puts commits, changes of rules, and moves of tenants in order.
update checkpoint
set cursor = @cursor, backfill_from_ns = @backfill_from_ns, backfill_cursor_ns = @backfill_cursor_ns,
    watched_since_ns = @watched_since_ns, watched_until_ns = @watched_until_ns, late_ns = @late_ns, absence_judged_ns = @absence_judged_ns,
    watched_shown = @watched_shown,
    clock_offset_ns = @clock_offset_ns, revision = revision + 1,
    lease_until = now() + @lease_for::interval, committed_at = now()
where partition = @partition and token = @token::bigint and revision = @revision and rules_revision = @rules_revision
returning revision;

-- name: RulesRetentionFloor :many
-- Returns the start times before which rules raise nothing any more, because retention may have
-- deleted their alerts of that time. They cannot change until the transaction ends. Each row also
-- says whether any silence has begun and not ended, and whether any webhook has quiet hours. This
-- saves separate queries for both.
select rule_id, swept_before_ns, (select exists (
    select from silence i
    where i.ended_at is null and i.starts_at <= clock_timestamp() and (i.ends_at is null or i.ends_at > clock_timestamp())))::boolean as silences,
       (select exists (select from webhook w where w.quiet_hours is not null and w.deleted_at is null))::boolean as quiet
from rule_state
where rule_id = any(@rule_ids::uuid[])
order by rule_id
for key share;

-- name: AlertInsert :exec
-- Inserts alerts, or fails if one of them exists. There must be no join here: it would change the
-- order of the rows, and indexes grow best if ids ascend.
insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message,
                   execution_id, start_time_ns, application, route, exchange, signature, late, late_by_ns, routing)
select i.alert_id, i.tenant_id, i.rule_id, i.rule_version, i.severity, 'FIRING', i.title, i.message,
       i.execution_id, i.start_time_ns, i.application, i.route, i.exchange, i.signature, i.late,
       greatest(0, (select (extract(epoch from now()) * 1e9)::bigint) - i.ended_ns), i.routing
from (
    select unnest(@alert_ids::uuid[]) as alert_id, unnest(@tenant_ids::text[]) as tenant_id, unnest(@rule_ids::uuid[]) as rule_id,
           unnest(@rule_versions::bigint[]) as rule_version, unnest(@severities::text[]) as severity,
           unnest(@titles::text[]) as title, unnest(@messages::text[]) as message, unnest(@execution_ids::text[]) as execution_id,
           unnest(@start_times_ns::bigint[]) as start_time_ns, unnest(@applications::text[]) as application,
           unnest(@routes::text[]) as route, unnest(@exchanges::json[]) as exchange, unnest(@signatures::text[]) as signature,
           unnest(@lates::boolean[]) as late, unnest(@ended_ns::bigint[]) as ended_ns, unnest(@routings::jsonb[]) as routing
) i;

-- name: AlertInsertMissing :many
-- Inserts the alerts that do not exist yet, and returns those. This costs so much more that it is
-- only for batches in which some may exist.
insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message,
                   execution_id, start_time_ns, application, route, exchange, signature, late, late_by_ns, routing)
select i.alert_id, i.tenant_id, i.rule_id, i.rule_version, i.severity, 'FIRING', i.title, i.message,
       i.execution_id, i.start_time_ns, i.application, i.route, i.exchange, i.signature, i.late,
       greatest(0, (select (extract(epoch from now()) * 1e9)::bigint) - i.ended_ns), i.routing
from (
    select unnest(@alert_ids::uuid[]) as alert_id, unnest(@tenant_ids::text[]) as tenant_id, unnest(@rule_ids::uuid[]) as rule_id,
           unnest(@rule_versions::bigint[]) as rule_version, unnest(@severities::text[]) as severity,
           unnest(@titles::text[]) as title, unnest(@messages::text[]) as message, unnest(@execution_ids::text[]) as execution_id,
           unnest(@start_times_ns::bigint[]) as start_time_ns, unnest(@applications::text[]) as application,
           unnest(@routes::text[]) as route, unnest(@exchanges::json[]) as exchange, unnest(@signatures::text[]) as signature,
           unnest(@lates::boolean[]) as late, unnest(@ended_ns::bigint[]) as ended_ns, unnest(@routings::jsonb[]) as routing
) i
on conflict (rule_id, execution_id) do nothing
returning alert_id;

-- name: NotificationInsert :execrows
-- Records notifications and puts them into the outbox, in the given order, for webhooks that cannot
-- be deleted before the transaction ends. Writes nothing if one of the webhooks is deleted. Each is ready from its own
-- instant on: many of one instant would be sent before a digest of the first of them.
with held as materialized (
    select from webhook where webhook_id = any(@held_ids::uuid[]) order by webhook_id for key share
), recorded as (
    insert into notification (notification_id, tenant_id, alert_id, rule_id, webhook_id, reason, commit_span)
    select unnest(@notification_ids::uuid[]), unnest(@tenant_ids::text[]), unnest(@alert_ids::uuid[]),
           unnest(@rule_ids::uuid[]), unnest(@webhook_ids::uuid[]), unnest(@reasons::text[]), unnest(@commit_spans::bytea[])
    where (select count(*) from held) = cardinality(@held_ids::uuid[])
    returning notification_id, webhook_id
)
insert into outbox (notification_id, webhook_id, ready_at)
select notification_id, webhook_id, clock_timestamp() from recorded;

-- name: BackfillWrite :exec
-- An empty until is none, and so is a range that is empty.
insert into rule_backfill as b (rule_id, position, until, failing, refused_from_ns, refused_to_ns)
select w.rule_id, w.position, nullif(w.until, ''), w.failing,
       case when w.from_ns < w.to_ns then w.from_ns end, case when w.from_ns < w.to_ns then w.to_ns end
from (
    select unnest(@rule_ids::uuid[]) as rule_id, unnest(@positions::text[]) as position,
           unnest(@untils::text[]) as until, unnest(@failing::boolean[]) as failing,
           unnest(@refused_from_ns::bigint[]) as from_ns, unnest(@refused_to_ns::bigint[]) as to_ns
) w
order by w.rule_id
on conflict (rule_id) do update
set position = excluded.position, until = excluded.until, failing = excluded.failing,
    refused_from_ns = excluded.refused_from_ns, refused_to_ns = excluded.refused_to_ns
where (b.position, b.until, b.failing, b.refused_from_ns, b.refused_to_ns)
      is distinct from (excluded.position, excluded.until, excluded.failing, excluded.refused_from_ns, excluded.refused_to_ns);

-- name: BackfillBegin :exec
-- Makes a rule read again, from a position, what its partition has evaluated.
insert into rule_backfill (rule_id, position, failing) values (@rule_id, @position, false)
on conflict (rule_id) do update set position = excluded.position, until = null;

-- name: BackfillDelete :exec
delete from rule_backfill where rule_id = any(@rule_ids::uuid[]);

-- name: RuleProblems :exec
-- Stores the problems of rules; an empty problem means none.
update rule_state s
set problem = nullif(w.problem, ''),
    problem_at = case when w.problem = '' then null when s.problem is null then now() else s.problem_at end
from (select unnest(@rule_ids::uuid[]) as rule_id, unnest(@problems::text[]) as problem) w
where s.rule_id = w.rule_id and s.problem is distinct from nullif(w.problem, '');

-- name: RulesEvaluated :exec
-- Stores that rules were evaluated. A rule counts as interrupted if it missed three evaluations and
-- thirty seconds more.
update rule_state s
set last_run_at = now(),
    evaluated_since = case when s.last_run_at > now() - (30 + 3 * r.interval_seconds) * interval '1 s' then coalesce(s.evaluated_since, s.last_run_at) else now() end
from rule r
where s.rule_id = any(@rule_ids::uuid[]) and r.rule_id = s.rule_id;
