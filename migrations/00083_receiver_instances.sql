-- +goose Up

-- Of a receiver that keeps alerts in memory: the processes that have answered, newest first, as they name
-- themselves, and since when open alerts are to be sent again because a new one has answered; null if they were.
alter table webhook_state
    add column instances text[] not null default '{}',
    add column restarted_at timestamptz;
