-- +goose Up

-- When the receiver of a webhook began to ask for the pauses in a row that holds counts. A
-- message ends when its receiver has asked for pauses for longer than the schedule lasts, and
-- not because it waited for other reasons.
alter table webhook_state add column held_since timestamptz;
update webhook_state set held_since = now() where holds > 0;
create index webhook_state_held on webhook_state (webhook_id) where holds > 0;
