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
-- Returns since when the open alerts of a webhook are to be sent again; no row if they were.
select s.restarted_at::timestamptz as restarted_at from webhook_state s
where s.webhook_id = @webhook_id and s.restarted_at is not null;

-- name: ResendMessages :many
-- Returns, for each open alert, the last message that said so and was delivered to a webhook, if its
-- attempt began before an instant. Alerts about which such a message is open are left out.
select l.notification_id
from webhook w
join alert a on a.tenant_id = w.tenant_id and a.state <> 'RESOLVED'
cross join lateral (
    select n.notification_id, coalesce(s.started_at, s.settled_at) as begun_at
    from notification n join settlement s using (notification_id)
    where n.alert_id = a.alert_id and n.webhook_id = w.webhook_id and n.about is null
      and n.reason = any(@reasons::text[]) and s.status = 'DELIVERED'
    order by n.created_at desc, n.notification_id desc
    limit 1
) l
where w.webhook_id = @webhook_id and l.begun_at < @before::timestamptz
  and not exists (
      select from notification n join outbox o using (notification_id)
      where n.alert_id = a.alert_id and n.webhook_id = w.webhook_id and n.about is null and n.reason = any(@reasons::text[]))
order by a.alert_id;

-- name: ResendOpen :many
-- Returns those of some messages whose alerts are open, and locks the alerts until the transaction
-- ends.
select n.notification_id
from alert a join notification n using (alert_id)
where n.notification_id = any(@ids::uuid[]) and a.state <> 'RESOLVED'
order by a.alert_id
for no key update of a;

-- name: ResendDone :exec
update webhook_state set restarted_at = null where webhook_id = @webhook_id and restarted_at = @restarted_at::timestamptz;
