-- +goose Up

-- What resolves the alerts of a PER_EXCHANGE rule beside people: resolution is that of the
-- package rules. Such a rule may tell its webhooks when that happens. A program before this one
-- resolves nothing by itself, and keeps what is written here.
alter table rule
    add column resolution jsonb not null default '{}',
    drop constraint only_windows_group,
    add constraint only_windows_group check (fire_mode <> 'PER_EXCHANGE' or group_by = ''),
    add constraint only_exchanges_resolve check (fire_mode = 'PER_EXCHANGE' or resolution = '{}'),
    add constraint resolution_tells check (fire_mode <> 'PER_EXCHANGE' or resolution <> '{}' or not notify_on_resolve);

create index rule_resolving on rule (rule_id) where resolution <> '{}' and deleted_at is null;

-- Why Tocsin resolved the alert: by its age, or by an exchange that completed, which is named.
-- Null in other alerts.
alter table alert add column resolution jsonb;

-- How far the alerts of a rule were resolved.
create table rule_resolution (
    rule_id        uuid primary key references rule on delete cascade,
    -- When somebody last took the rule on.
    at             timestamptz not null,
    -- Up to which start time evidence was looked for, in nanoseconds by the source's clock, for
    -- alerts raised until then, by what evidence; null before.
    searched_to_ns bigint,
    searched_at    timestamptz,
    searched_for   jsonb
);
