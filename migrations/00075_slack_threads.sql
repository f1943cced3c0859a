-- +goose Up

-- A bot may post the messages of an issue into the thread of its first one.
alter table webhook add column slack_threads boolean not null default false;

-- The message of an issue whose thread takes those that follow within a day. An issue is the
-- alerts of one signature in one application and route, here by their hash.
create table slack_thread (
    webhook_id uuid not null,
    issue      uuid not null,
    message_id bigint not null references slack_message on delete cascade,
    -- The webhook's channel as it was entered, in which the message stands.
    channel    text not null,
    ts         text not null,
    begun_at   timestamptz not null default now(),
    primary key (webhook_id, issue)
);

create index slack_thread_of_message on slack_thread (message_id);
