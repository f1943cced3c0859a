-- name: QuietTargets :many
-- Returns which of some alerts a webhook with quiet hours would be notified of, and the instant by
-- which to decide. Alerts that are critical or about Tocsin itself are left out.
select t.alert_id::uuid as alert_id, t.webhook_id::uuid as webhook_id, w.quiet_hours, clock_timestamp()::timestamptz as now
from (select unnest(@alert_ids::uuid[]) as alert_id, unnest(@webhook_ids::uuid[]) as webhook_id) t
join webhook w on w.webhook_id = t.webhook_id and w.quiet_hours is not null
join alert a on a.alert_id = t.alert_id and a.severity <> 'CRITICAL' and not a.health;

-- name: NotificationQuiet :execrows
-- Records notifications that quiet hours hold, under the conditions of [NotificationInsert].
with held as materialized (
    select from webhook where webhook_id = any(@held_ids::uuid[]) order by webhook_id for key share
), given as (
    select unnest(@notification_ids::uuid[]) as notification_id, unnest(@tenant_ids::text[]) as tenant_id, unnest(@alert_ids::uuid[]) as alert_id,
           unnest(@rule_ids::uuid[]) as rule_id, unnest(@webhook_ids::uuid[]) as webhook_id, unnest(@reasons::text[]) as reason,
           unnest(@quiet_untils::timestamptz[]) as quiet_until
), recorded as (
    insert into notification (notification_id, tenant_id, alert_id, rule_id, webhook_id, reason)
    select notification_id, tenant_id, alert_id, rule_id, webhook_id, reason from given
    where (select count(*) from held) = cardinality(@held_ids::uuid[])
    returning notification_id
)
insert into outbox (notification_id, webhook_id, ready_at, due_at, quiet_until)
select g.notification_id, g.webhook_id, null, null, g.quiet_until
from recorded join given g using (notification_id);

-- name: QuietWaiting :many
-- Returns the webhooks for which quiet hours hold messages, and the present instant.
select w.webhook_id, w.quiet_hours, coalesce(sqlc.narg(now)::timestamptz, now())::timestamptz as now
from webhook w
where exists (select from outbox o where o.webhook_id = w.webhook_id and o.quiet_until is not null)
order by w.webhook_id;

-- name: QuietMove :exec
-- Moves the end of the quiet hours in the messages held for a webhook whose quiet hours were
-- edited. Rows that are locked at the moment are moved the next time.
with moved as (
    select o.notification_id from outbox o
    where o.webhook_id = @webhook_id and o.quiet_until > @now::timestamptz and o.quiet_until <> @ends_at::timestamptz
    for no key update skip locked
)
update outbox o
set quiet_until = @ends_at::timestamptz, expires_at = o.expires_at - o.quiet_until + @ends_at::timestamptz
where o.notification_id = any(array(select moved.notification_id from moved));

-- name: QuietOver :many
-- Returns the alerts about which a webhook has messages whose quiet hours have ended, each once,
-- that come after one. Alerts about which quiet hours hold other messages, because they were edited and have
-- begun again, wait for these: what became of an alert is decided about all of its messages. The messages
-- are found first: in the order of the alerts, all messages that were ever written would be read.
with over as materialized (
    select (select n.alert_id from notification n where n.notification_id = o.notification_id)::uuid as alert_id
    from outbox o
    where o.webhook_id = @webhook_id and o.quiet_until <= @now::timestamptz
)
select distinct over.alert_id::uuid as alert_id from over
where over.alert_id > @after_id::uuid
  and (select bool_and(p.quiet_until <= @now::timestamptz) from notification m join outbox p using (notification_id)
       where m.alert_id = over.alert_id and m.webhook_id = @webhook_id and p.quiet_until is not null)
order by 1
limit @most;

-- name: QuietLock :exec
-- Locks the held messages about alerts for a webhook, in the order in which other transactions lock
-- the messages of alerts.
select from notification n join outbox o using (notification_id)
where n.alert_id = any(@alert_ids::uuid[]) and n.webhook_id = @webhook_id::uuid and o.quiet_until is not null
order by o.notification_id
for no key update of o;

-- name: QuietRead :many
-- Returns the messages about locked alerts whose quiet hours have ended, in the order in which they
-- were written, unless quiet hours hold another one about the alert. It also returns whether somebody has looked after the alert for so long that it
-- cannot be undone, and whether the webhook was notified of the alert before. To acknowledge an
-- alert and to snooze it means to be reminded: what happened before the snooze ended does not count
-- for its message, if the webhook was notified before.
select o.notification_id, n.alert_id::uuid as alert_id, n.reason,
       (a.state = 'ACKNOWLEDGED' and a.acknowledged_at < coalesce(sqlc.narg(now)::timestamptz, now()) - @undo_within::interval
            and not (k.notified and n.reason = 'SNOOZE_ENDED' and a.acknowledged_at < n.created_at)
        or a.state = 'RESOLVED' and a.resolved_at < coalesce(sqlc.narg(now)::timestamptz, now()) - @undo_within::interval
        or exists (select from alert_snooze z where z.alert_id = a.alert_id and z.until > coalesce(sqlc.narg(now)::timestamptz, now())
                   and z.snoozed_since < coalesce(sqlc.narg(now)::timestamptz, now()) - @undo_within::interval)
       )::boolean as handled,
       k.notified::boolean as notified
from notification n
join outbox o using (notification_id)
join alert a on a.alert_id = n.alert_id
cross join lateral (
    select exists (select from notified_of_alert v where v.alert_id = n.alert_id and v.webhook_id = n.webhook_id) as notified
) k
where n.alert_id = any(@alert_ids::uuid[]) and n.webhook_id = @webhook_id::uuid
  and o.quiet_until <= coalesce(sqlc.narg(now)::timestamptz, now())
  and (select bool_and(p.quiet_until <= coalesce(sqlc.narg(now)::timestamptz, now())) from notification m join outbox p using (notification_id)
       where m.alert_id = n.alert_id and m.webhook_id = n.webhook_id and p.quiet_until is not null)
order by n.alert_id, n.created_at, n.notification_id;

-- name: QuietDiscard :exec
-- Ends messages that the transaction has locked and that are of no use any more. Their attempts are
-- recorded as not made.
with gone as (
    delete from outbox o where o.notification_id = any(@ids::uuid[]) returning o.notification_id, o.attempts
)
insert into settlement (notification_id, tenant_id, status, discarded_by, attempt, claim_token, replica, started_at, verdict, error,
                        response, duration_us)
select g.notification_id, n.tenant_id, 'DISCARDED', @discarded_by::text, g.attempts + 1, random_token(), '', now(), 'NOT_MADE', @why::text, '', 0
from gone g join notification n using (notification_id);

-- name: QuietRelease :exec
-- Puts messages that the transaction has locked into the queue, or makes them wait for an earlier
-- one that is still open. The age that they may reach counts from now.
update outbox o
set quiet_until = null, since = clock_timestamp(), expires_at = o.expires_at - o.quiet_until + coalesce(sqlc.narg(now)::timestamptz, now()),
    after_id = p.notification_id,
    ready_at = case when p.notification_id is null then clock_timestamp() end, due_at = case when p.notification_id is null then clock_timestamp() end
from outbox r left join outbox p on p.notification_id = r.after_id
where r.notification_id = any(@ids::uuid[]) and o.notification_id = r.notification_id;

-- name: QuietDigests :execrows
-- Puts the digests of silences into the queue that quiet hours have held for a webhook until now.
with over as (
    select o.notification_id from outbox o
    where o.webhook_id = @webhook_id and o.quiet_until <= @now::timestamptz and o.digest
    for no key update skip locked
)
update outbox o
set quiet_until = null, since = clock_timestamp(), ready_at = clock_timestamp(), due_at = clock_timestamp()
where o.notification_id = any(array(select over.notification_id from over));

-- name: QuietSent :one
-- Returns the alert of a message that a person has taken out of quiet hours, and whether its webhook
-- was not notified of the alert before.
select n.alert_id::uuid as alert_id,
       (not exists (
           select from notified_of_alert k
           where k.alert_id = n.alert_id and k.webhook_id = n.webhook_id and k.notification_id <> n.notification_id
       ))::boolean as first
from notification n where n.notification_id = @notification_id;
