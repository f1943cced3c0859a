-- +goose Up

-- What the exchange failed with, apart from what differs each time; see
-- alerts.Signature. Null in alerts that are older than the column, and where an
-- alert is not about one exchange.
alter table alert add column signature text;

-- What people did to many alerts at once. An alert that the action changed bears
-- the action's number as its change until something else changes it: that is
-- what an undo goes by.
create table alert_action (
    tenant_id text not null,
    action_id uuid not null,
    actor     text not null,
    action    text not null check (action in ('acknowledge', 'resolve')),
    change    bigint not null,
    changed   bigint not null default 0,
    already   bigint not null default 0,
    refused   bigint not null default 0,
    unknown   bigint not null default 0,
    at        timestamptz not null default now(),
    undone_at timestamptz,
    restored  bigint not null default 0,
    primary key (tenant_id, action_id)
);

-- Up to where somebody has read everything, but for what alert_read says.
create table reader (
    tenant_id  text not null,
    actor      text not null,
    read_up_to timestamptz not null,
    primary key (tenant_id, actor)
);

create table alert_read (
    tenant_id text not null,
    actor     text not null,
    alert_id  uuid not null references alert on delete cascade,
    read      boolean not null,
    primary key (tenant_id, actor, alert_id)
);

create index alert_read_of_alert on alert_read (alert_id);
create index alert_kept_unread on alert_read (tenant_id, actor) where not read;

-- Until when the former signing secret signs beside the present one.
alter table webhook add column former_secret_until timestamptz;
