-- +goose Up

-- Since when an alert has been snoozed without a break. snoozed_at is when somebody last chose until when.
alter table alert_snooze add column snoozed_since timestamptz not null default now();
update alert_snooze set snoozed_since = snoozed_at;
