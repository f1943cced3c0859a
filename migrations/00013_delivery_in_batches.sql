-- +goose Up

-- What belongs to a notification is written in batches, by statements that have
-- the notification's row in the outbox in their hands, which keeps the notification
-- from being deleted: SweepAlerts leaves alone what is owed. To check the reference
-- of each row again, with a lock on the notification, would cost as much as the
-- writing. What deletes a notification deletes the rest with it, by the trigger.
alter table outbox drop constraint outbox_notification_id_fkey;
alter table attempt drop constraint attempt_notification_id_fkey;
alter table notification_body drop constraint notification_body_notification_id_fkey;
alter table settlement drop constraint settlement_notification_id_fkey;

-- +goose StatementBegin
create function notification_gone() returns trigger language plpgsql as $$
begin
    delete from outbox o using gone g where o.notification_id = g.notification_id;
    delete from attempt t using gone g where t.notification_id = g.notification_id;
    delete from notification_body b using gone g where b.notification_id = g.notification_id;
    delete from settlement s using gone g where s.notification_id = g.notification_id;
    return null;
end $$;
-- +goose StatementEnd

create trigger notification_gone after delete on notification
referencing old table as gone for each statement execute function notification_gone();

-- An attempt is written twice: when it begins, and soon after with its outcome,
-- which takes room on the same page.
alter table attempt set (fillfactor = 50);

-- Nobody asks for a part of a head: it is kept as it was written.
alter table attempt
    alter column request type json,
    alter column response_head type json;

-- Nobody reads settlements by their status.
drop index settlement_by_status;
