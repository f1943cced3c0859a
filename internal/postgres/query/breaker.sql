-- name: BreakerLock :one
-- The breaker of a webhook, held until the transaction ends, and whether a claim
-- is that of its probe.
select s.failures, s.openings, s.opened_at, s.open_until, s.last_error, s.last_error_at,
       (s.probe_id is not null and s.probe_id = @notification_id::uuid and s.probe_token = @token::bigint)::boolean as probe,
       clock_timestamp()::timestamptz as at
from webhook_state s
where s.webhook_id = @webhook_id
for update;

-- name: BreakerWrite :exec
-- A breaker that is written after its probe, or closed, has no probe any more. Nothing
-- is written where the webhook was edited, which waits for the lock, since the attempt.
update webhook_state s
set failures = @failures, openings = @openings, opened_at = sqlc.narg(opened_at), open_until = sqlc.narg(open_until),
    last_error = @last_error, last_error_at = sqlc.narg(last_error_at),
    probe_id = case when @probe::boolean or sqlc.narg(opened_at)::timestamptz is null then null else s.probe_id end,
    probe_token = case when @probe::boolean or sqlc.narg(opened_at)::timestamptz is null then null else s.probe_token end
from webhook w
where s.webhook_id = @webhook_id and w.webhook_id = s.webhook_id and w.version = @version;

-- name: BreakerReset :exec
-- Forgets what attempts told; what the rate allows stays.
update webhook_state
set failures = 0, openings = 0, opened_at = null, open_until = null, last_error = '', last_error_at = null,
    probe_id = null, probe_token = null
where webhook_id = @webhook_id;

-- name: WebhookFlows :many
select s.webhook_id, s.failures, s.openings, s.opened_at, s.open_until, s.last_error, s.last_error_at, now()::timestamptz as at
from webhook_state s
where s.webhook_id = any(@webhook_ids::uuid[]);

-- name: AlertRaiseWebhookOff :one
-- Tells that a webhook was switched off; no row when an open alert tells so already.
-- Its rule is that of the notification that met it, or of one that a digest told.
insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, health, webhook_id,
                   start_time_ns, application, route, exchange)
select @alert_id, n.tenant_id, r.rule_id, r.version, 'CRITICAL', 'FIRING', @title, @message, true, @webhook_id::uuid, 0, '', '', '{}'
from notification n
join rule r on r.rule_id = coalesce(n.rule_id, (
    select t.rule_id from digest_member m join notification t using (notification_id)
    where m.digest_id = n.notification_id
    limit 1))
where n.notification_id = @notification_id::uuid
for key share of r
on conflict (webhook_id) where webhook_id is not null and state <> 'RESOLVED' do nothing
returning rule_id;

-- name: AlertResolveWebhookOff :exec
update alert
set state = 'RESOLVED', resolved_at = now(), change = nextval('alert_change')
where webhook_id = @webhook_id::uuid and state <> 'RESOLVED';
