-- +goose Up

-- How long after the end of its exchange an alert was raised, and whether it was
-- found behind the cursor. Alerts that are not about one exchange have neither.
alter table alert
    add column late_by_ns bigint check (late_by_ns >= 0),
    add column late       boolean not null default false;

create index alert_late on alert (rule_id, fired_at) where late;

-- Each tick rewrites rows of this table, twice for each rule that is due: room
-- in their pages keeps a claim off the index, and the table small.
alter table rule_state set (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- When exchanges were last compared with alerts on nobody's request, what was
-- missing then, and the rule after which the next comparison begins.
create table reconciliation (
    only_row   boolean primary key default true check (only_row),
    at         timestamptz not null,
    rules      bigint not null,
    missing    bigint not null,
    next_after uuid not null
);
