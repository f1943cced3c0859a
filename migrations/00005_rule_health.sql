-- +goose Up

-- Where operators are told about Tocsin itself.
alter table webhook add column operators boolean not null default false;

-- Which rules cannot be evaluated, and the alert that says so. The primary key
-- makes the telling once-only: who inserts the row tells, who deletes it tells
-- that the rule has recovered.
create table rule_failing (
    rule_id  uuid primary key references rule on delete cascade,
    alert_id uuid not null,
    since    timestamptz not null default now()
);

-- An alert is about an exchange, about a group of a count, or about its rule.
alter table alert
    add column health boolean not null default false,
    drop constraint about_one_thing,
    add constraint about_one_thing check (num_nonnulls(execution_id, group_key) + health::int = 1);

create unique index alert_health_once on alert (rule_id) where health and state <> 'RESOLVED';

alter table notification
    drop constraint notification_reason_check,
    add constraint notification_reason_check
        check (reason in ('FIRED', 'REMINDER', 'RESOLVED', 'RULE_FAILING', 'RULE_RECOVERED'));
