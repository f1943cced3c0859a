-- +goose Up

-- One index finds the messages of an alert and holds them unique. There were two, because the unique one left out the
-- messages about other messages, of which an alert may have several: here each of those is unique by itself.
create unique index notification_of_alert_once on notification
    (alert_id, webhook_id, reason, generation, (case when about is null then '00000000-0000-0000-0000-000000000000'::uuid else notification_id end));
drop index notification_once;
drop index notification_of_alert;
alter index notification_of_alert_once rename to notification_once;
