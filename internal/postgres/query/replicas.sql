-- name: ReplicaBeat :exec
-- Inserts the replica, or inserts it again if its row was deleted.
insert into replica (replica_id, host, pid, version, roles)
values (@replica_id, @host, @pid, @version, @roles)
on conflict (replica_id) do update set beat_at = now();

-- name: ReplicaSilent :one
-- Returns whether another replica is dead by this statement's clock. The silence of one whose heartbeat lies ahead,
-- because this clock was set back, counts from now: if it lives, it soon sends another.
with ahead as (
    update replica set beat_at = now() where beat_at > now() + @dead_after::interval and replica_id <> @self::text
)
select exists (
    select from replica where beat_at <= now() - @dead_after::interval and replica_id <> @self::text
) as silent;

-- name: ReplicaReleasePartitions :many
-- Ends the leases of replicas that are dead by this statement's clock. Rows that are locked at the
-- moment are left for the next time.
with held as (
    select c.partition, c.owner
    from checkpoint c
    join replica r on r.replica_id = c.owner
    where r.beat_at <= now() - @dead_after::interval and r.replica_id <> @self::text
    order by c.partition
    for update of c skip locked
), released as (
    update checkpoint c
    set owner = null, token = null, lease_until = null
    from held
    where c.partition = held.partition
    returning held.owner
)
select owner::text as replica_id, count(*) as partitions from released group by owner order by owner;

-- name: ReplicaReleaseNotifications :many
-- The same for notifications, which become due at once, also if this clock was set back. The outcomes of attempts that
-- were begun are unknown.
with held as (
    select o.notification_id, o.attempts, o.claim_token, o.claimed_by, o.begun_at
    from outbox o
    join replica r on r.replica_id = o.claimed_by
    where r.beat_at <= now() - @dead_after::interval and r.replica_id <> @self::text
    for update of o skip locked
), unknown as (
    insert into attempt (notification_id, attempt, claim_token, replica, started_at)
    select t.notification_id, t.attempts, t.claim_token, coalesce(t.claimed_by, ''), t.begun_at
    from held t
    where t.begun_at is not null and t.claim_token is not null
    on conflict do nothing
), released as (
    update outbox o
    set due_at = least(o.due_at, now()), ready_at = least(o.ready_at, now()), claim_token = null, claimed_by = null, begun_at = null
    from held
    where o.notification_id = held.notification_id
    returning held.claimed_by, o.webhook_id
)
select claimed_by::text as replica_id, webhook_id, count(*) as claims from released group by claimed_by, webhook_id order by claimed_by;

-- name: ReplicaForget :execrows
delete from replica
where beat_at <= now() - @forget_after::interval and replica_id <> @self::text;

-- name: ReplicaReleaseOwnPartitions :execrows
with held as (
    select partition from checkpoint where owner = @replica_id::text order by partition for update
)
update checkpoint c
set owner = null, token = null, lease_until = null
from held
where c.partition = held.partition;

-- name: ReplicaReleaseOwnNotifications :many
with held as (
    select notification_id, attempts, claim_token, claimed_by, begun_at from outbox where claimed_by = @replica_id::text for update
), unknown as (
    insert into attempt (notification_id, attempt, claim_token, replica, started_at)
    select t.notification_id, t.attempts, t.claim_token, coalesce(t.claimed_by, ''), t.begun_at
    from held t
    where t.begun_at is not null and t.claim_token is not null
    on conflict do nothing
), released as (
    update outbox o
    set due_at = least(o.due_at, now()), claim_token = null, claimed_by = null, begun_at = null
    from held
    where o.notification_id = held.notification_id
    returning o.webhook_id
)
select webhook_id, count(*) as claims from released group by webhook_id;

-- name: ReplicaLeave :exec
delete from replica where replica_id = @replica_id;

-- name: ReplicaList :many
-- Expired leases do not count: any replica may take what they were on.
select sqlc.embed(r),
       greatest(extract(epoch from now() - r.beat_at), 0)::double precision as silent_seconds,
       array(select c.partition from checkpoint c where c.owner = r.replica_id and c.lease_until > now() order by c.partition)::integer[] as partitions,
       coalesce(rules.count, 0)::bigint as claimed_rules,
       coalesce(notifications.claims, 0)::bigint as claimed_notifications
from replica r
left join (
    select c.owner, count(*) as count
    from checkpoint c join tenant_partition t using (partition) join rule u using (tenant_id)
    where c.lease_until > now() and u.enabled and u.deleted_at is null
    group by c.owner
) rules on rules.owner = r.replica_id
left join (
    select o.claimed_by, count(*) as claims from outbox o where o.due_at > now() and o.claimed_by is not null group by o.claimed_by
) notifications on notifications.claimed_by = r.replica_id
order by r.started_at, r.replica_id;
