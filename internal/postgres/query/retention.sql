-- name: RetentionTryLock :one
-- The transaction holds the lock until it ends: one replica deletes at a time.
select pg_try_advisory_xact_lock(hashtext('tocsin retention'), 0) as locked;

-- name: RetentionResponses :one
-- Deletes the stored responses of messages that were settled long ago, oldest first. A settlement has a
-- trail while they are stored.
with old as (
    select notification_id
    from settlement
    where trail and settled_at < now() - @keep::interval
    order by settled_at
    limit @most::int
    for update skip locked
), heads as (
    update attempt t
    set response_head = null, response = ''
    from old where t.notification_id = old.notification_id
), deleted as (
    update settlement s
    set trail = false, response_head = null, response = case when s.attempt is null then null else '' end
    from old where s.notification_id = old.notification_id
    returning s.notification_id
)
select count(*) from deleted;

-- name: BodyPartitionsAhead :one
select body_partitions_ahead(@width::interval)::int as made;

-- name: BodyPartitionDrop :one
select body_partition_drop(@keep::interval)::boolean as dropped;

-- name: RetentionBodies :execrows
-- Deletes old bodies that are in no dated partition, unless their messages are open.
delete from notification_body_rest b
where b.notification_id in (
    select r.notification_id from notification_body_rest r
    where r.written_at < now() - @keep::interval
      and not exists (select from outbox o where o.notification_id = r.notification_id)
    order by r.written_at
    limit @most::int
    for update skip locked
) and b.written_at < now() - @keep::interval;

-- name: RetentionCandidates :many
-- Returns alerts that ended long ago, in that order, that come after one. The caller decides which
-- of them may be deleted; alerts with open messages may not.
select a.alert_id, a.rule_id, a.resolved_at, a.start_time_ns,
       (a.execution_id is not null)::boolean as of_exchange,
       (p.rule_id is not null)::boolean as evaluated,
       p.cursor, p.backfill_from_ns, p.position, coalesce(p.armed_since_ns, 0)::bigint as armed_since_ns,
       coalesce(p.swept_before_ns, 0)::bigint as swept_before_ns, r.look_back_seconds,
       (extract(epoch from now()) * 1e9)::bigint as now_ns
from alert a
join rule r using (rule_id)
left join rule_progress p using (rule_id)
where a.state = 'RESOLVED'
  and (a.resolved_at, a.alert_id) > (@after_at::timestamptz, @after_id::uuid)
  and a.resolved_at < now() - @keep::interval
order by a.resolved_at, a.alert_id
limit @most::int;

-- name: RetentionFloorRaise :many
-- Raises the start times before which rules raise nothing any more. A rule that a commit or an edit
-- has locked is left for the next time.
with held as (
    select s.rule_id, w.before_ns
    from (select unnest(@rule_ids::uuid[]) as rule_id, unnest(@before_ns::bigint[]) as before_ns) w
    join rule_state s using (rule_id)
    where s.swept_before_ns < w.before_ns
    order by s.rule_id
    for update of s skip locked
)
update rule_state s
set swept_before_ns = held.before_ns
from held
where s.rule_id = held.rule_id
returning s.rule_id, s.swept_before_ns;

-- name: RetentionHold :exec
-- Locks waiting notifications, so that none becomes due while retention looks at them.
select from notification where alert_id = any(@alert_ids::uuid[]) order by notification_id for update;

-- name: RetentionHoldDigests :exec
-- Does the same for their digests.
select from notification d
where d.notification_id in (
    select m.digest_id from notification n join digest_content m using (notification_id) where n.alert_id = any(@alert_ids::uuid[])
)
order by d.notification_id
for update;

-- name: RetentionAlerts :execrows
-- Deletes alerts with everything that belongs to them, unless something is still open. An alert that holds its group stays
-- as well: without it, the group would raise another one.
delete from alert a
where a.alert_id = any(@alert_ids::uuid[])
  and a.state = 'RESOLVED'
  and a.resolved_at < now() - @keep::interval
  and not (a.held and exists (select from rule r where r.rule_id = a.rule_id and r.deleted_at is null))
  and not exists (
      select from notification n
      left join digest_member m using (notification_id)
      join outbox o on o.notification_id = coalesce(m.digest_id, n.notification_id)
      where n.alert_id = a.alert_id
  )
  and not exists (
      select from notification n
      join digest_listing l using (notification_id)
      join outbox o on o.notification_id = l.digest_id
      where n.alert_id = a.alert_id
  )
  and not exists (select from rule_failing f where f.alert_id = a.alert_id);

-- name: RetentionDigests :execrows
-- Deletes digests that were settled long ago and whose alerts are all deleted.
delete from notification n
where n.notification_id in (
    select d.notification_id
    from digest d join settlement s using (notification_id)
    where s.settled_at < now() - @keep::interval
      and not exists (select from digest_content m where m.digest_id = d.notification_id)
    limit @most::int
);

-- name: RetentionDone :exec
insert into retention_pass (at) values (now()) on conflict (only_row) do update set at = excluded.at;

-- name: LookBackLongest :one
-- Returns the rule with the longest look-back.
select name, look_back_seconds from rule
where deleted_at is null and fire_mode = 'PER_EXCHANGE'
order by look_back_seconds desc, name
limit 1;
