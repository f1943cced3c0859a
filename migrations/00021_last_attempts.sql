-- +goose Up

-- The attempt by which a notification came to its end is recorded with the end, in
-- one row: most notifications have no other one. What it sent is in
-- notification_body, whose request is that of the last attempt. An attempt before it,
-- and one that a later claim or a person has superseded, is in the table attempt, with
-- a copy of its request. All are null where the end came otherwise: by a success
-- whose claim had passed to somebody else, or with the webhook.
alter table settlement
    add column attempt       integer,
    add column claim_token   bigint,
    add column replica       text,
    add column started_at    timestamptz,
    add column verdict       text,
    add column status_code   integer,
    add column error         text,
    add column response      text,
    add column duration_us   bigint,
    add column response_head json;

-- Not valid: what is there already has none of them, and need not be read.
alter table settlement
    add constraint settlement_attempt check (
        num_nulls(attempt, claim_token, replica, started_at, error, response, duration_us) in (0, 7)
    ) not valid,
    add constraint settlement_verdict check (
        verdict in ('DELIVERED', 'RETRY', 'THROTTLED', 'REFUSED', 'GONE')
    ) not valid;

-- As of the table attempt: rows are found by their keys, and a vacuum for what was
-- inserted serves to freeze it.
alter table settlement set (autovacuum_vacuum_insert_scale_factor = 1);
alter table settlement
    alter notification_id set statistics 10, alter tenant_id set statistics 10, alter status set statistics 10,
    alter attempt set statistics 10, alter claim_token set statistics 10, alter replica set statistics 10,
    alter started_at set statistics 10, alter verdict set statistics 10, alter status_code set statistics 10,
    alter error set statistics 0, alter response set statistics 0, alter duration_us set statistics 10,
    alter response_head set statistics 0;

-- Every attempt: those recorded, and those that the outbox tells of. An outcome that
-- was handed over twice, because an answer was lost, may be recorded twice.
create or replace view attempt_history as
select t.notification_id, t.attempt, t.claim_token, t.replica, t.started_at, t.finished_at, t.verdict, t.status_code, t.error, t.response,
       t.duration_us, t.request, t.response_head
from attempt t
where not exists (select from settlement s where s.notification_id = t.notification_id and s.attempt = t.attempt)
union all
select s.notification_id, s.attempt, s.claim_token, s.replica, s.started_at, s.settled_at, s.verdict, s.status_code, s.error, s.response,
       s.duration_us, b.request, s.response_head
from settlement s left join notification_body b using (notification_id)
where s.attempt is not null
union all
select o.notification_id, o.attempts, o.claim_token, coalesce(o.claimed_by, ''), o.begun_at, null, null, null, '', '', null, b.request, null
from outbox o left join notification_body b using (notification_id)
where o.begun_at is not null and o.claim_token is not null;
