-- +goose Up

-- An attempt is recorded once, with its outcome. That it has begun is told by the
-- notification's row in the outbox, which is written before the call anyway: while
-- the claim stands under which it was begun, the attempt whose number is the row's
-- is under way, or its outcome is unknown. Who takes such a row over, or takes it
-- from its claimant, records the attempt without outcome in the same statement.
-- begun_at is when the last attempt was begun; null since a claim in which none was
-- begun yet.
alter table outbox add column begun_at timestamptz;

-- The head of the request of the last attempt that was begun.
alter table notification_body add column request json;

-- A row is claimed and an attempt begun within a few milliseconds, on the same page
-- if there is room for the versions of all its rows.
alter table outbox set (fillfactor = 40);

-- What was recorded is hardly ever changed.
alter table attempt reset (fillfactor);

-- Every attempt: those recorded, and those that the outbox tells of.
create view attempt_history as
select notification_id, attempt, claim_token, replica, started_at, finished_at, verdict, status_code, error, response, duration_us,
       request, response_head
from attempt
union all
select o.notification_id, o.attempts, o.claim_token, coalesce(o.claimed_by, ''), o.begun_at, null, null, null, '', '', null, b.request, null
from outbox o left join notification_body b using (notification_id)
where o.begun_at is not null and o.claim_token is not null;

-- Nobody searches in what an alert tells of its exchange: it is kept as it was
-- written, which is read less often than it is written.
alter table alert alter column exchange type json using exchange::json;
