-- +goose Up

-- What suppresses messages: silences, and maintenance windows, which recur. Match is that of
-- alerts/match, and a recurrence that of alerts/silences. None is deleted: messages name them.
create table silence (
    silence_id uuid primary key,
    tenant_id  text not null,
    name       text not null check (name <> ''),
    reason     text not null default '',
    match      jsonb not null,
    starts_at  timestamptz not null,
    ends_at    timestamptz,
    recurrence jsonb,
    version    bigint not null default 1,
    created_at timestamptz not null default clock_timestamp(),
    created_by text not null default '',
    updated_at timestamptz not null default clock_timestamp(),
    updated_by text not null default '',
    ended_at   timestamptz,
    ended_by   text not null default '',
    constraint silence_ends_after_start check (ends_at > starts_at),
    constraint silence_ends_or_recurs check (ends_at is not null or recurrence is not null)
);

create index silence_of_tenant on silence (tenant_id, silence_id);
create index silence_open on silence (tenant_id, ends_at) where ended_at is null;

create trigger audit after insert or update or delete on silence for each row
    execute function audit_row('silence', 'silence_id', 'name', '', '');

-- A message that a silence suppressed is settled when it is written, and names the silence.
alter table settlement
    add column silence_id uuid,
    drop constraint settlement_status_check,
    add constraint settlement_status_check check (status in ('DELIVERED', 'FAILED', 'EXHAUSTED', 'DISCARDED', 'SUPPRESSED')) not valid,
    add constraint suppressed_by_silence check ((status = 'SUPPRESSED') = (silence_id is not null)) not valid;

create index settlement_suppressed on settlement (silence_id) where silence_id is not null;

create or replace view notification_status as
select n.notification_id, n.tenant_id, n.alert_id, n.rule_id, n.webhook_id, n.reason, n.created_at,
       coalesce(s.status, case
           when o.attempts > 1 or o.attempts = 1 and not (o.claim_token is not null and o.due_at > now()) then 'RETRYING'
           else 'PENDING'
       end) as status,
       o.due_at as next_attempt_at,
       s.settled_at,
       m.digest_id,
       d.size as digest_size,
       s.silence_id
from notification n
left join digest_member m using (notification_id)
left join digest d on d.notification_id = coalesce(m.digest_id, n.notification_id)
left join outbox o on o.notification_id = coalesce(m.digest_id, n.notification_id)
left join settlement s on s.notification_id = coalesce(m.digest_id, n.notification_id);

-- A program before this one would send what a silence suppresses.
update schema_compatibility set least = 45;
