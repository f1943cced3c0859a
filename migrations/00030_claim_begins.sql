-- +goose Up

-- A claim begins the attempt: whoever takes a row has stored its body, and calls as soon
-- as that is committed. What an attempt sent is derived from the body and the webhook.
drop view attempt_history;
alter table attempt drop column request;
alter table notification_body drop column request;

-- since is when a message became due for the first time, or a person sent it again: one
-- whose receiver asks for pauses ends when it has waited for longer than the schedule.
alter table outbox add column since timestamptz not null default now();
update outbox o set since = n.created_at from notification n where n.notification_id = o.notification_id;

-- Pauses in a row that the receiver has asked for, and how long the last one is. After
-- each, a probe goes first.
alter table webhook_state
    add column holds integer not null default 0 check (holds >= 0),
    add column held_for interval not null default '0',
    drop constraint only_open_probes,
    add constraint probe_is_complete check (num_nonnulls(probe_id, probe_token) in (0, 2));

-- An attempt that is begun may turn out not to be wanted any more: then no call is made.
alter table attempt
    drop constraint attempt_verdict_check,
    add constraint attempt_verdict_check check (verdict in ('DELIVERED', 'RETRY', 'THROTTLED', 'REFUSED', 'GONE', 'NOT_MADE'));

-- A person may discard what was not delivered.
alter table settlement
    add column discarded_by text,
    drop constraint settlement_status_check,
    add constraint settlement_status_check check (status in ('DELIVERED', 'FAILED', 'EXHAUSTED', 'DISCARDED')) not valid,
    drop constraint settlement_verdict,
    add constraint settlement_verdict check (
        verdict in ('DELIVERED', 'RETRY', 'THROTTLED', 'REFUSED', 'GONE', 'NOT_MADE')
    ) not valid;

-- Operators are notified of a message that was not delivered, which is the one that their
-- notification is about, and of a webhook that has not answered for long.
alter table notification
    add column about uuid,
    drop constraint notification_reason_check,
    add constraint notification_reason_check check (reason in (
        'FIRED', 'REMINDER', 'RESOLVED', 'RULE_FAILING', 'RULE_RECOVERED', 'WEBHOOK_OFF', 'WEBHOOK_FAILING', 'UNDELIVERED', 'DIGEST',
        'SOURCE_FAILING', 'SOURCE_RECOVERED'
    )) not valid,
    drop constraint notification_once;
create unique index notification_once on notification (alert_id, webhook_id, reason, generation) where about is null;

-- What operators were notified of about a webhook, and is not over. The primary key has
-- it notified once: whoever inserts the row raises the alert, whoever deletes it resolves it.
create table webhook_incident (
    webhook_id uuid not null references webhook on delete cascade,
    kind       text not null check (kind in ('OFF', 'FAILING')),
    alert_id   uuid not null,
    since      timestamptz not null default now(),
    primary key (webhook_id, kind)
);
insert into webhook_incident (webhook_id, kind, alert_id, since)
select webhook_id, 'OFF', alert_id, fired_at from alert where webhook_id is not null and state <> 'RESOLVED';
drop index alert_webhook_once;
create index alert_of_webhook on alert (webhook_id) where webhook_id is not null and state <> 'RESOLVED';

-- A first attempt under way is no retry.
create or replace view notification_status as
select n.notification_id, n.tenant_id, n.alert_id, n.rule_id, n.webhook_id, n.reason, n.created_at,
       coalesce(s.status, case
           when o.attempts > 1 or o.attempts = 1 and not (o.claim_token is not null and o.due_at > now()) then 'RETRYING'
           else 'PENDING'
       end) as status,
       o.due_at as next_attempt_at,
       s.settled_at,
       m.digest_id,
       d.size as digest_size
from notification n
left join digest_member m using (notification_id)
left join digest d on d.notification_id = coalesce(m.digest_id, n.notification_id)
left join outbox o on o.notification_id = coalesce(m.digest_id, n.notification_id)
left join settlement s on s.notification_id = coalesce(m.digest_id, n.notification_id);

-- Every attempt: those recorded, and those that the outbox tells of. An outcome that
-- was handed over twice, because an answer was lost, may be recorded twice.
create view attempt_history as
select t.notification_id, t.attempt, t.claim_token, t.replica, t.started_at, t.finished_at, t.verdict, t.status_code, t.error, t.response,
       t.duration_us, t.response_head
from attempt t
where not exists (select from settlement s where s.notification_id = t.notification_id and s.attempt = t.attempt)
union all
select s.notification_id, s.attempt, s.claim_token, s.replica, s.started_at, s.settled_at, s.verdict, s.status_code, s.error, s.response,
       s.duration_us, s.response_head
from settlement s
where s.attempt is not null
union all
select o.notification_id, o.attempts, o.claim_token, coalesce(o.claimed_by, ''), o.begun_at, null, null, null, '', '', null, null
from outbox o
where o.begun_at is not null and o.claim_token is not null;

-- Programs before this one claim without beginning, and write columns that are gone.
update schema_compatibility set least = 30;
