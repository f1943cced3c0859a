-- +goose Up

-- When a row is due, whoever holds it: the queue is ordered by it. Claims, their
-- renewals and the beginning of attempts move due_at alone, which no index holds,
-- so that none of them writes to an index.
alter table outbox add column ready_at timestamptz not null default now();

update outbox set ready_at = due_at where claim_token is null;

drop index outbox_due;
drop index outbox_digest_due;
create index outbox_ready on outbox (webhook_id, ready_at, notification_id);
create index outbox_digest_ready on outbox (webhook_id, ready_at, notification_id) where digest;
