-- name: BreakerLock :many
-- Returns the breakers of webhooks and the claims of their probes. Locks them in a fixed order
-- until the transaction ends.
select s.webhook_id, s.failures, s.openings, s.opened_at, s.open_until, s.last_error, s.last_error_at, s.holds, s.held_for,
       s.held_since, w.held_until,
       s.probe_id, s.probe_token, w.version, clock_timestamp()::timestamptz as at
from webhook_state s
join webhook w using (webhook_id)
where s.webhook_id = any(@webhook_ids::uuid[])
order by s.webhook_id
for update of s;

-- name: BreakerWrite :exec
-- Writes a breaker. A breaker that is written after its probe, or has closed, has no probe any
-- more. Nothing is written if the webhook was edited since the attempt; an edit waits for the lock.
update webhook_state s
set failures = @failures, openings = @openings, opened_at = sqlc.narg(opened_at), open_until = sqlc.narg(open_until),
    last_error = @last_error, last_error_at = sqlc.narg(last_error_at), holds = @holds, held_for = @held_for,
    held_since = sqlc.narg(held_since), probe_id = case when @probe::boolean then null else s.probe_id end,
    probe_token = case when @probe::boolean then null else s.probe_token end
from webhook w
where s.webhook_id = @webhook_id and w.webhook_id = s.webhook_id and w.version = @version;

-- name: WebhooksToHold :exec
-- Locks webhooks in a fixed order and before their states, as an edit does.
select from webhook where webhook_id = any(@webhook_ids::uuid[]) order by webhook_id for no key update;

-- name: WebhookHold :exec
update webhook
set held_until = greatest(held_until, @until::timestamptz)
where webhook_id = @webhook_id and version = @version;

-- name: OutboxExpire :many
-- Ends some messages that have waited at least as long as given, for webhooks whose receivers have
-- asked for pauses for as long and still do. The oldest of each webhook come first.
with held as (
    select w.webhook_id from webhook_state s join webhook w using (webhook_id)
    where s.holds > 0 and s.held_since < now() - @expire::interval and w.held_until > now() and w.enabled
), old as (
    select o.notification_id from held cross join lateral (
        select b.notification_id from outbox b
        where b.webhook_id = held.webhook_id and b.ready_at >= '-infinity' and b.since < now() - @expire::interval
          and (b.claim_token is null or b.due_at <= now())
        order by b.ready_at limit @most for update skip locked
    ) o limit @most
), gone as (
    delete from outbox o using old where o.notification_id = old.notification_id
    returning o.notification_id, o.attempts, o.claim_token, o.claimed_by, o.begun_at
), unknown as (
    insert into attempt (notification_id, attempt, claim_token, replica, started_at)
    select t.notification_id, t.attempts, t.claim_token, coalesce(t.claimed_by, ''), t.begun_at
    from gone t where t.begun_at is not null and t.claim_token is not null
    on conflict do nothing
)
insert into settlement (notification_id, tenant_id, status)
select n.notification_id, n.tenant_id, 'EXHAUSTED' from gone join notification n using (notification_id)
returning notification_id;

-- name: BreakersTroubled :many
-- Returns those of some webhooks that have a failure to forget after an answer.
select webhook_id from webhook_state
where webhook_id = any(@webhook_ids::uuid[]) and (failures > 0 or opened_at is not null or holds > 0);

-- name: BreakerReset :exec
-- Forgets what attempts have shown. The use of the rate is kept.
update webhook_state
set failures = 0, openings = 0, opened_at = null, open_until = null, last_error = '', last_error_at = null,
    holds = 0, held_for = '0', held_since = null, probe_id = null, probe_token = null
where webhook_id = @webhook_id;

-- name: WebhookFlows :many
select s.webhook_id, s.failures, s.openings, s.opened_at, s.open_until, s.last_error, s.last_error_at, now()::timestamptz as at
from webhook_state s
where s.webhook_id = any(@webhook_ids::uuid[]);

