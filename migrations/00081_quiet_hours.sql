-- +goose Up

-- When a webhook is not to be disturbed by what is not critical, as rules.Calendar has it; null is never.
alter table webhook add column quiet_hours jsonb;
create index webhook_quiet on webhook (webhook_id) where quiet_hours is not null and deleted_at is null;

-- A message that quiet hours hold is in the outbox without ready_at and due_at, like one that waits for
-- another: neither looks nor claims see it. A sweep puts it into the queue when they are over, or ends it
-- where it is of no use by then.
alter table outbox
    add column quiet_until timestamptz,
    drop constraint waits_for_another,
    add constraint waits_outside check (
        (ready_at is null) = (after_id is not null or quiet_until is not null) and (due_at is null) = (after_id is not null or quiet_until is not null)
    ) not valid;

create index outbox_quiet on outbox (webhook_id, quiet_until) where quiet_until is not null;

-- +goose StatementBegin
create or replace function outbox_next() returns trigger language plpgsql as $$
declare
    before uuid := old.after_id;
begin
    if before is null then
        select m.digest_id into before
        from digest_member m join outbox d on d.notification_id = m.digest_id
        where m.notification_id = old.notification_id;
        update outbox set followed = true where notification_id = before;
    end if;
    update outbox
    set after_id = before,
        ready_at = case when before is null and quiet_until is null then clock_timestamp() end,
        due_at = case when before is null and quiet_until is null then clock_timestamp() end,
        since = case when before is null then clock_timestamp() else since end
    where after_id = old.notification_id;
    return null;
end $$;
-- +goose StatementEnd

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
       s.silence_id,
       o.quiet_until
from notification n
left join digest_member m using (notification_id)
left join digest d on d.notification_id = coalesce(m.digest_id, n.notification_id)
left join outbox o on o.notification_id = coalesce(m.digest_id, n.notification_id)
left join settlement s on s.notification_id = coalesce(m.digest_id, n.notification_id);

-- The steps of an escalation count from when the alert fired, or from the end of the quiet hours that held
-- its messages. Void are the steps since the last one that was taken which were due while somebody looked
-- after the alert, and when that was found: an undo has them taken after all. The row stays for that after
-- the last step, due no more.
alter table alert_escalation
    add column counts_from  timestamptz,
    add column void_minutes integer[] not null default '{}',
    add column void_at      timestamptz[] not null default '{}',
    alter column due_at drop not null;

-- A program before this one would send what quiet hours hold.
update schema_compatibility set least = 81;
