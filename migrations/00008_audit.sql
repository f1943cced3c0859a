-- +goose Up

-- What was sent and what came back, without secrets: a notify.RequestHead,
-- written with the attempt, and a notify.ResponseHead, written with its outcome.
alter table attempt
    add column request       jsonb,
    add column response_head jsonb;

-- Whether the heads and bodies of a settled notification are still kept. The
-- index holds only those whose are.
alter table settlement add column trail boolean not null default true;

create index settlement_trail on settlement (settled_at) where trail;

-- Alerts that have come to their end, oldest first.
create index alert_over on alert (resolved_at, alert_id) where state = 'RESOLVED';

-- The start time before which a rule raises nothing any more, because alerts
-- on exchanges of that time may have been deleted. It only rises, and is
-- committed before they are.
alter table rule_state add column swept_before_ns bigint not null default 0;

-- When all replicas together last came to the end of what was to be deleted.
create table retention_pass (
    only_row boolean primary key default true check (only_row),
    at       timestamptz not null
);
