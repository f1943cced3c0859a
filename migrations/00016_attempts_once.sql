-- +goose Up

-- An attempt is recorded once, with its outcome. That it has begun is told by the
-- notification's row in the outbox, which is written before the call anyway: while
-- the claim stands under which it was begun, the attempt whose number is the row's
-- is under way, or its outcome is unknown. Who takes such a row over, or takes it
-- from its claimant, records the attempt without outcome in the same statement.
alter table outbox
    -- When the last attempt was begun, and the head of its request; null since a
    -- claim in which none was begun yet.
    add column begun_at timestamptz,
    add column request  json;

-- What was recorded is hardly ever changed.
alter table attempt reset (fillfactor);

-- Every attempt: those recorded, and those that the outbox tells of.
create view attempt_history as
select notification_id, attempt, claim_token, replica, started_at, finished_at, verdict, status_code, error, response, duration_us,
       request, response_head
from attempt
union all
select notification_id, attempts, claim_token, coalesce(claimed_by, ''), begun_at, null, null, null, '', '', null, request, null
from outbox
where begun_at is not null and claim_token is not null;
