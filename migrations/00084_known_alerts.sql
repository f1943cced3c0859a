-- +goose Up

-- The messages by which a webhook was notified of an alert, or will be: neither held by quiet hours, nor
-- suppressed or given up.
create view notified_of_alert as
select n.alert_id, n.webhook_id, n.notification_id
from notification n
left join digest_member m on m.notification_id = n.notification_id
left join settlement s on s.notification_id = coalesce(m.digest_id, n.notification_id)
left join outbox o on o.notification_id = n.notification_id
where n.about is null and o.quiet_until is null and coalesce(s.status not in ('SUPPRESSED', 'DISCARDED'), true);

-- The messages that quiet hours hold for webhooks that know nothing of the alert yet: its steps wait for these.
create view quiet_unknown as
select n.alert_id, n.webhook_id, o.quiet_until
from outbox o join notification n using (notification_id)
where o.quiet_until is not null
  and not exists (select from notified_of_alert k where k.alert_id = n.alert_id and k.webhook_id = n.webhook_id);
