-- +goose Up

-- Fencing tokens of claims on rules and on outbox rows. Only ever larger.
create sequence claim_token;

create table webhook (
    webhook_id      uuid primary key,
    tenant_id       text not null,
    name            text not null,
    kind            text not null check (kind in ('slack', 'generic')),
    -- URL, headers and signing secret as one sealed value, bound to this row.
    secrets         bytea not null,
    url_host        text not null,
    signed          boolean not null,
    body_template   text not null default '',
    enabled         boolean not null,
    disabled_reason text not null default '',
    timeout_ms      integer not null check (timeout_ms between 100 and 120000),
    max_concurrent  integer not null check (max_concurrent between 1 and 1000),
    rate_per_second double precision not null check (rate_per_second >= 0),
    held_until      timestamptz,
    version         bigint not null default 1,
    created_at      timestamptz not null default now(),
    updated_at      timestamptz not null default now(),
    deleted_at      timestamptz
);

create unique index webhook_name_once on webhook (tenant_id, name) where deleted_at is null;

create table rule (
    rule_id              uuid primary key,
    tenant_id            text not null,
    name                 text not null,
    enabled              boolean not null,
    fire_mode            text not null check (fire_mode in ('PER_EXCHANGE', 'COUNT_IN_WINDOW')),
    severity             text not null check (severity in ('CRITICAL', 'WARNING', 'INFO')),
    scope                jsonb not null,
    filter               jsonb not null,
    title_template       text not null,
    message_template     text not null,
    targets              jsonb not null,
    interval_seconds     integer not null check (interval_seconds between 1 and 3600),
    look_back_seconds    integer not null check (look_back_seconds between 0 and 604800),
    re_notify_minutes    integer not null check (re_notify_minutes between 0 and 10080),
    for_duration_seconds integer not null check (for_duration_seconds between 0 and 86400),
    version              bigint not null default 1,
    created_at           timestamptz not null default now(),
    updated_at           timestamptz not null default now(),
    deleted_at           timestamptz,
    constraint per_exchange_fires_once
        check (fire_mode <> 'PER_EXCHANGE' or (re_notify_minutes = 0 and for_duration_seconds = 0))
);

create unique index rule_name_once on rule (tenant_id, name) where deleted_at is null;
create index rule_of_tenant on rule (tenant_id, rule_id) where deleted_at is null;

create table rule_webhook (
    rule_id    uuid not null references rule on delete cascade,
    webhook_id uuid not null references webhook,
    position   integer not null,
    primary key (rule_id, webhook_id)
);

create index rule_webhook_of_webhook on rule_webhook (webhook_id);

-- How far each rule has come. Apart from the definition, so that a tick and an
-- edit do not wait for each other, and so that this narrow row is all that a
-- tick rewrites.
create table rule_state (
    rule_id        uuid primary key references rule on delete cascade,
    -- Nanoseconds since the Unix epoch: timestamptz would round to microseconds.
    armed_since_ns bigint not null,
    -- Former conditions, each for what ended while it stood; see rules.Era.
    former         jsonb not null default '[]',
    -- "<start time>|<execution id>"; null before the first run.
    cursor         text collate "C",
    -- Null while the rule is disabled.
    next_run_at    timestamptz,
    claim_token    bigint,
    claimed_by     text,
    claimed_until  timestamptz,
    last_run_at    timestamptz,
    -- What last went wrong on behalf of this rule, and is not yet over.
    problem        text,
    problem_at     timestamptz
);

create index rule_state_due on rule_state (next_run_at);

-- Orders the changes of alerts, so that an inbox can tell that something is new.
create sequence alert_change;

create table alert (
    alert_id        uuid primary key,
    tenant_id       text not null,
    rule_id         uuid not null references rule,
    rule_version    bigint not null,
    severity        text not null check (severity in ('CRITICAL', 'WARNING', 'INFO')),
    state           text not null check (state in ('FIRING', 'ACKNOWLEDGED', 'RESOLVED')),
    title           text not null,
    message         text not null,
    -- The key of the exchange; ordered and compared as bytes, as ClickHouse does.
    execution_id    text collate "C" not null,
    start_time_ns   bigint not null,
    application     text not null,
    route           text not null,
    exchange        jsonb not null,
    fired_at        timestamptz not null default now(),
    acknowledged_at timestamptz,
    acknowledged_by text not null default '',
    resolved_at     timestamptz,
    resolved_by     text not null default '',
    change          bigint not null default nextval('alert_change'),
    constraint alert_once unique (rule_id, execution_id)
);

create index alert_inbox on alert (tenant_id, fired_at desc, alert_id desc);
create index alert_inbox_by_state on alert (tenant_id, state, fired_at desc, alert_id desc);

create index alert_newest_change on alert (tenant_id, change desc);

-- The record of what is owed. Never updated.
create table notification (
    notification_id uuid primary key,
    tenant_id       text not null,
    alert_id        uuid not null references alert on delete cascade,
    rule_id         uuid not null,
    webhook_id      uuid not null references webhook,
    reason          text not null check (reason in ('FIRED')),
    created_at      timestamptz not null default now(),
    constraint notification_once unique (alert_id, webhook_id, reason)
);

create index notification_of_tenant on notification (tenant_id, created_at desc, notification_id desc);

-- The work that is left: a row for each notification that is not settled.
create table outbox (
    notification_id uuid primary key references notification on delete cascade,
    webhook_id      uuid not null,
    -- The instant from which anybody may take the row: when it is due or, while
    -- it is claimed, when the claim lapses.
    due_at          timestamptz not null default now(),
    -- Attempts begun, and how many of them count against the schedule.
    attempts        integer not null default 0,
    counted         integer not null default 0,
    claim_token     bigint,
    claimed_by      text
) with (fillfactor = 70);

create index outbox_due on outbox (webhook_id, due_at, notification_id);

-- What is sent, rendered at the first attempt and frozen.
create table notification_body (
    notification_id uuid primary key references notification on delete cascade,
    content_type    text not null,
    content         bytea not null,
    -- Why the body is a fallback; empty when it is what its template says.
    problem         text not null default ''
);

-- One HTTP try each. Committed before the call; a row without verdict is an
-- attempt of unknown outcome.
create table attempt (
    notification_id uuid not null references notification on delete cascade,
    attempt         integer not null,
    claim_token     bigint not null,
    replica         text not null,
    started_at      timestamptz not null default now(),
    finished_at     timestamptz,
    verdict         text check (verdict in ('DELIVERED', 'RETRY', 'THROTTLED', 'REFUSED', 'GONE')),
    status_code     integer,
    error           text not null default '',
    response        text not null default '',
    duration_us     bigint,
    primary key (notification_id, attempt)
);

-- How a notification ended. A notification is in the outbox or here, never both.
create table settlement (
    notification_id uuid primary key references notification on delete cascade,
    tenant_id       text not null,
    status          text not null check (status in ('DELIVERED', 'FAILED', 'EXHAUSTED')),
    settled_at      timestamptz not null default now()
);

create index settlement_by_status on settlement (tenant_id, status, settled_at desc);

create view notification_status as
select n.notification_id, n.tenant_id, n.alert_id, n.rule_id, n.webhook_id, n.reason, n.created_at,
       coalesce(s.status, case when o.attempts > 0 then 'RETRYING' else 'PENDING' end) as status,
       o.due_at as next_attempt_at,
       s.settled_at
from notification n
left join outbox o using (notification_id)
left join settlement s using (notification_id);
