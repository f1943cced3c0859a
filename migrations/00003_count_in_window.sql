-- +goose Up

alter table rule
    add column threshold         integer not null default 0 check (threshold between 0 and 1000000),
    add column window_seconds    integer not null default 0 check (window_seconds between 0 and 86400),
    add column group_by          text not null default '' check (group_by in ('', 'ROUTE', 'APPLICATION', 'ENVIRONMENT')),
    add column notify_on_resolve boolean not null default false,
    add constraint counting_is_complete
        check ((fire_mode = 'COUNT_IN_WINDOW') = (threshold > 0 and window_seconds >= 10)),
    add constraint only_counting_groups
        check (fire_mode = 'COUNT_IN_WINDOW' or (group_by = '' and not notify_on_resolve));

-- An alert is about an exchange, or about a group of a count.
alter table alert
    alter column execution_id drop not null,
    add column group_key   text collate "C",
    add column count       jsonb,
    add column notified_at timestamptz,
    add constraint about_one_thing check ((execution_id is null) <> (group_key is null)),
    add constraint counted check ((group_key is null) = (count is null)),
    drop constraint alert_state_check,
    add constraint alert_state_check check (state in ('PENDING', 'FIRING', 'ACKNOWLEDGED', 'RESOLVED')),
    add constraint only_counts_wait check (state <> 'PENDING' or group_key is not null);

-- At most one alert is open for each rule and group.
create unique index alert_open_once on alert (rule_id, group_key) where group_key is not null and state <> 'RESOLVED';

-- A reminder may be owed many times; its generation counts them.
alter table notification
    add column generation integer not null default 0,
    drop constraint notification_reason_check,
    add constraint notification_reason_check check (reason in ('FIRED', 'REMINDER', 'RESOLVED')),
    drop constraint notification_once,
    add constraint notification_once unique (alert_id, webhook_id, reason, generation);
