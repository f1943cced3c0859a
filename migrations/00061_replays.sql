-- +goose Up

-- What a person asked to be judged again by a rule: the exchanges that began from one instant
-- on and before another one, in nanoseconds since the Unix epoch. Of a rule one at a time is
-- under way. None is deleted before its rule is.
create table replay (
    replay_id  uuid primary key,
    tenant_id  text not null,
    rule_id    uuid not null references rule on delete cascade,
    -- The rule as it was called then, for the audit log.
    rule_name  text not null,
    from_ns    bigint not null,
    to_ns      bigint not null,
    messages   text not null check (messages in ('NONE', 'DIGEST', 'EACH')),
    state      text not null default 'RUNNING' check (state in ('RUNNING', 'DONE', 'CANCELLED', 'STOPPED', 'FAILED')),
    -- How far it has come: "<start time>|<execution id>".
    position   text collate "C" not null,
    -- How many exchanges matched up to there, and how many alerts it has raised about them.
    matched    bigint not null default 0,
    alerts     bigint not null default 0,
    -- Why it was stopped or failed, or why it does not come further; empty where nothing is wrong.
    problem    text not null default '',
    created_at timestamptz not null default clock_timestamp(),
    created_by text not null default '',
    ended_at   timestamptz,
    ended_by   text not null default '',
    constraint replay_has_a_range check (to_ns > from_ns),
    constraint replay_ends check ((state = 'RUNNING') = (ended_at is null))
);

create unique index replay_once on replay (rule_id) where ended_at is null;
create index replay_of_rule on replay (rule_id, replay_id);

-- Its progress is no change that people make: the audit log tells its beginning and its end.
create trigger audit after insert or update of state or delete on replay for each row
    execute function audit_row('replay', 'replay_id', 'rule_name', '', 'position,matched,alerts,rule_name');

-- A program before this one would send the digests of a replay before its end.
update schema_compatibility set least = 61;
