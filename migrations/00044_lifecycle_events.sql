-- +goose Up

-- What else than raised alerts a webhook is notified of, and how long after it happened at most.
-- ESCALATED is prepared: nothing escalates yet.
alter table webhook
    add column events text[] not null default '{}',
    add column event_age_seconds integer not null default 86400,
    add constraint webhook_events check (events <@ array['ACKNOWLEDGED', 'RESOLVED', 'REOPENED', 'ESCALATED']),
    add constraint webhook_event_age check (event_age_seconds between 60 and 2592000);

-- Who changed the state of the alert; empty is Tocsin.
alter table notification
    add column actor text not null default '',
    drop constraint notification_reason_check,
    add constraint notification_reason_check check (reason in (
        'FIRED', 'REMINDER', 'RESOLVED', 'ACKNOWLEDGED', 'REOPENED', 'ESCALATED', 'RULE_FAILING', 'RULE_RECOVERED', 'WEBHOOK_OFF',
        'WEBHOOK_FAILING', 'UNDELIVERED', 'DIGEST', 'SOURCE_FAILING', 'SOURCE_RECOVERED'
    )) not valid;

-- The messages of an alert for a webhook go out in order. One that comes while an earlier one
-- is open waits for it, without ready_at and due_at: then it is in no queue, and neither looks
-- nor claims see it. The earlier one is marked as followed. When that leaves the outbox, the trigger
-- below puts the next one into the queue.
alter table outbox
    add column after_id   uuid,
    add column followed   boolean not null default false,
    -- From when on a message is of no use to its receiver any more; null is never.
    add column expires_at timestamptz,
    alter column ready_at drop not null,
    alter column due_at drop not null,
    add constraint waits_for_another check ((ready_at is null) = (after_id is not null) and (due_at is null) = (after_id is not null));

create index outbox_after on outbox (after_id) where after_id is not null;

-- Whoever waited for a message waits now for what that waited for or, where it was gathered,
-- for its digest; else it is due.
-- +goose StatementBegin
create function outbox_next() returns trigger language plpgsql as $$
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
    set after_id = before, ready_at = case when before is null then clock_timestamp() end, due_at = case when before is null then clock_timestamp() end,
        since = case when before is null then clock_timestamp() else since end
    where after_id = old.notification_id;
    return null;
end $$;
-- +goose StatementEnd

create trigger outbox_next after delete on outbox for each row when (old.followed) execute function outbox_next();

-- The id of a notification, as notify.ID derives it.
-- +goose StatementBegin
create function notification_id(alert uuid, webhook uuid, reason text, generation bigint) returns uuid language sql immutable as $$
    select encode(set_byte(set_byte(h.id, 6, get_byte(h.id, 6) & 15 | 128), 8, get_byte(h.id, 8) & 63 | 128), 'hex')::uuid
    from (
        select substring(uuid_send(alert) from 1 for 6) ||
               substring(sha256(uuid_send(alert) || uuid_send(webhook) || int8send(generation) || convert_to(reason, 'UTF8')) from 1 for 10) as id
    ) h
$$;
-- +goose StatementEnd
