-- name: ReplicaBeat :exec
-- Enters the replica, or again when its row has been deleted meanwhile.
insert into replica (replica_id, host, pid, version, roles)
values (@replica_id, @host, @pid, @version, @roles)
on conflict (replica_id) do update set beat_at = now();

-- name: ReplicaSilent :one
-- Whether any other replica is dead by this statement's clock.
select exists (
    select from replica where beat_at <= now() - @dead_after::interval and replica_id <> @self::text
) as silent;

-- name: ReplicaReleaseRules :many
-- Ends the claims on rules and cohorts of replicas that are dead by this
-- statement's clock, and leaves their cohorts to whoever comes first. What is
-- locked just now is left to the next time.
with held_cohorts as (
    select c.cohort_id, r.replica_id, c.claimed_by is not null as claimed
    from cohort c
    join replica r on r.replica_id = coalesce(c.claimed_by, c.home)
    where r.beat_at <= now() - @dead_after::interval and r.replica_id <> @self::text
    for update of c skip locked
), released_cohorts as (
    update cohort c
    set claim_token = null, claimed_by = null, claimed_until = null, home = null
    from held_cohorts held
    where c.cohort_id = held.cohort_id
    returning held.replica_id, case when held.claimed then c.members else 0 end as members
), held as (
    select s.rule_id, s.claimed_by
    from rule_state s
    join replica r on r.replica_id = s.claimed_by
    where r.beat_at <= now() - @dead_after::interval and r.replica_id <> @self::text
    for update of s skip locked
), released as (
    update rule_state s
    set claim_token = null, claimed_by = null, claimed_until = null
    from held
    where s.rule_id = held.rule_id
    returning held.claimed_by
)
select replica_id::text as replica_id, sum(claims)::bigint as claims
from (
    select claimed_by as replica_id, 1 as claims from released
    union all select replica_id, members from released_cohorts
) all_released
group by replica_id
having sum(claims) > 0
order by replica_id;

-- name: ReplicaReleaseNotifications :many
-- The same for notifications, which are due at once. Nobody knows the outcomes of
-- attempts that were begun.
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
    set due_at = least(o.due_at, now()), claim_token = null, claimed_by = null, begun_at = null
    from held
    where o.notification_id = held.notification_id
    returning held.claimed_by
)
select claimed_by::text as replica_id, count(*) as claims from released group by claimed_by order by claimed_by;

-- name: ReplicaForget :execrows
delete from replica
where beat_at <= now() - @forget_after::interval and replica_id <> @self::text;

-- name: ReplicaReleaseOwnRules :execrows
update rule_state
set claim_token = null, claimed_by = null, claimed_until = null
where claimed_by = @replica_id::text;

-- name: ReplicaReleaseOwnCohorts :one
-- Returns how many rules were members of those that were claimed.
with held as (
    select cohort_id, claimed_by is not null as claimed from cohort where claimed_by = @replica_id::text or home = @replica_id::text for update
), released as (
    update cohort c
    set claim_token = case when c.claimed_by = @replica_id::text then null else c.claim_token end,
        claimed_until = case when c.claimed_by = @replica_id::text then null else c.claimed_until end,
        claimed_by = nullif(c.claimed_by, @replica_id::text),
        home = nullif(c.home, @replica_id::text)
    from held
    where c.cohort_id = held.cohort_id
    returning case when held.claimed then c.members else 0 end as members
)
select coalesce(sum(members), 0)::bigint from released;

-- name: ReplicaReleaseOwnNotifications :execrows
with held as (
    select notification_id, attempts, claim_token, claimed_by, begun_at from outbox where claimed_by = @replica_id::text for update
), unknown as (
    insert into attempt (notification_id, attempt, claim_token, replica, started_at)
    select t.notification_id, t.attempts, t.claim_token, coalesce(t.claimed_by, ''), t.begun_at
    from held t
    where t.begun_at is not null and t.claim_token is not null
    on conflict do nothing
)
update outbox o
set due_at = least(o.due_at, now()), claim_token = null, claimed_by = null, begun_at = null
from held
where o.notification_id = held.notification_id;

-- name: ReplicaLeave :exec
delete from replica where replica_id = @replica_id;

-- name: ReplicaList :many
-- Claims that have lapsed are not counted: anybody may take what they were on.
select sqlc.embed(r),
       greatest(extract(epoch from now() - r.beat_at), 0)::double precision as silent_seconds,
       coalesce(rules.claims, 0)::bigint as claimed_rules,
       coalesce(notifications.claims, 0)::bigint as claimed_notifications
from replica r
left join (
    select s.claimed_by, count(*) as claims from rule_progress s where s.claimed_until > now() group by s.claimed_by
) rules on rules.claimed_by = r.replica_id
left join (
    select o.claimed_by, count(*) as claims from outbox o where o.due_at > now() and o.claimed_by is not null group by o.claimed_by
) notifications on notifications.claimed_by = r.replica_id
order by r.started_at, r.replica_id;
