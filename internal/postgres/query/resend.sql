-- name: ResendWebhooks :many
-- Returns the webhooks of some presets to which messages are sent.
select sqlc.embed(w) from webhook w
where w.preset = any(@presets::text[]) and w.enabled and w.deleted_at is null
order by w.webhook_id;

-- name: InstanceAdd :execrows
-- Stores that a process of a receiver has answered for the first time.
update webhook_state s
set instances = (array_prepend(@instance::text, s.instances))[1:@most::int], restarted_at = now()
where s.webhook_id = @webhook_id and not (@instance::text = any(s.instances));

-- name: ResendPending :many
-- Returns since when the open alerts of a webhook are to be sent again; no row if they were. Also returns whether an
-- attempt is under way that began before: it may yet become known as delivered to the former process.
select s.restarted_at::timestamptz as restarted_at,
       exists (
           select from outbox o
           where o.webhook_id = s.webhook_id and o.ready_at >= '-infinity' and o.claim_token is not null and o.begun_at < s.restarted_at
       )::boolean as under_way
from webhook_state s
where s.webhook_id = @webhook_id and s.restarted_at is not null;

-- name: ResendMessages :many
-- Returns, for each open alert, the message that last opened it at a webhook, if its attempt began
-- before an instant. Alerts are left out that a message closed there since, and those about which a
-- message waits that was sent again.
select l.notification_id
from webhook w
join alert a on a.tenant_id = w.tenant_id and a.state <> 'RESOLVED'
cross join lateral (
    select n.notification_id, n.reason, coalesce(s.started_at, s.settled_at) as begun_at
    from notification n join settlement s using (notification_id)
    where n.alert_id = a.alert_id and n.webhook_id = w.webhook_id and n.about is null
      and n.reason = any(@opening::text[] || @closing::text[]) and s.status = 'DELIVERED'
    order by n.created_at desc, n.notification_id desc
    limit 1
) l
where w.webhook_id = @webhook_id and l.begun_at < @before::timestamptz and l.reason = any(@opening::text[])
  and not exists (
      select from notification n join outbox o using (notification_id)
      where n.alert_id = a.alert_id and n.webhook_id = w.webhook_id and n.about is null and n.reason = any(@opening::text[]) and o.generation > 0)
order by a.alert_id;

-- name: ResendWebhook :execrows
-- Keeps a webhook from being deleted before the transaction ends, if messages are sent to it.
select from webhook w where w.webhook_id = @webhook_id and w.enabled and w.deleted_at is null
for key share;

-- name: ResendHold :many
-- Locks those alerts of some messages that nobody else has locked, and returns the messages about them.
with held as materialized (
    select alert_id from alert
    where alert_id in (select n.alert_id from notification n where n.notification_id = any(@ids::uuid[]))
    order by alert_id
    for no key update skip locked
)
select n.notification_id from notification n join held using (alert_id) where n.notification_id = any(@ids::uuid[]);

-- name: ResendOpen :many
-- Returns those of some messages whose alerts are open, if the attempts that delivered them began
-- before an instant: another process may have sent them again meanwhile. The transaction has locked
-- the alerts.
select n.notification_id
from notification n
join alert a using (alert_id)
join settlement s using (notification_id)
where n.notification_id = any(@ids::uuid[]) and a.state <> 'RESOLVED'
  and s.status = 'DELIVERED' and coalesce(s.started_at, s.settled_at) < @before::timestamptz;

-- name: ResendDone :exec
-- Notes that the open alerts of a webhook were sent again.
update webhook_state s set restarted_at = null
where s.webhook_id = @webhook_id and s.restarted_at = @restarted_at::timestamptz;

-- name: WebhookInstancesForget :exec
-- Forgets which processes have answered, because the webhook may now be that of another receiver.
update webhook_state set instances = '{}' where webhook_id = @webhook_id and instances <> '{}';
