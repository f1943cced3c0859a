-- +goose Up

-- The messages of an alert. The index that holds them unique leaves out those about other
-- messages, so that nothing which looks for all messages of an alert could use it: the inbox,
-- retention, and the deletion of alerts read the whole table for each.
create index notification_of_alert on notification (alert_id);
