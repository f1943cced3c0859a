-- +goose Up

-- A Slack webhook posts to a URL or, as a bot, to a channel. Token and signing
-- secret are among the sealed secrets.
alter table webhook
    add column slack_channel text not null default '',
    -- Slack limits updates apart from messages: this holds the former alone.
    add column updates_held_until timestamptz;

-- Where the messages of an alert stand in Slack. A message whose post was never
-- confirmed is entered when somebody presses a button of it.
create table slack_message (
    message_id      bigint generated always as identity primary key,
    webhook_id      uuid not null,
    alert_id        uuid not null references alert on delete cascade,
    notification_id uuid references notification on delete cascade,
    reason          text not null,
    channel         text not null,
    ts              text not null,
    posted_at       timestamptz not null default now(),
    constraint slack_message_once unique (webhook_id, channel, ts)
);

create index slack_message_of_alert on slack_message (alert_id);
create index slack_message_of_notification on slack_message (notification_id);

-- The messages that are to be brought in line with their alerts. A row leaves
-- when its message shows the present state.
create table slack_update (
    message_id  bigint primary key references slack_message on delete cascade,
    webhook_id  uuid not null,
    -- Differs after every change that is to be shown.
    generation  bigint not null default nextval('claim_token'),
    -- When anybody may take the row or, while it is claimed, when the claim lapses.
    due_at      timestamptz not null default now(),
    attempts    integer not null default 0,
    claim_token bigint
) with (fillfactor = 70);

create index slack_update_due on slack_update (webhook_id, due_at);

-- Owes an update to each message of an alert whose state changes, whoever
-- changes it and how many at once. Of those that one statement changes, the
-- newest 500 of each webhook are worth it: Slack takes about one a second. A row
-- that is claimed stays so, and is due again when its update has ended.
-- +goose StatementBegin
create function slack_update_owe() returns trigger language plpgsql as $$
begin
    insert into slack_update (message_id, webhook_id)
    select newest.message_id, newest.webhook_id
    from (
        select m.message_id, m.webhook_id,
               row_number() over (partition by m.webhook_id order by m.message_id desc) as place
        from new_alert n
        join old_alert o using (alert_id)
        join slack_message m using (alert_id)
        where n.state <> o.state
    ) newest
    where newest.place <= 500
    order by newest.message_id
    on conflict (message_id) do update
    set generation = excluded.generation, attempts = 0,
        due_at = case when slack_update.claim_token is null then now() else slack_update.due_at end;
    return null;
end
$$;
-- +goose StatementEnd

create trigger alert_state_is_shown
after update on alert
referencing old table as old_alert new table as new_alert
for each statement execute function slack_update_owe();
