-- +goose Up

-- Each alert was checked for the webhook that it is about, by a trigger of its own,
-- although hardly any is about one. That one is raised in the transaction that
-- switches its webhook off, and so holds it.
-- +goose StatementBegin
create or replace function webhook_is_named() returns trigger language plpgsql as $$
begin
    if exists (select from notification where webhook_id = old.webhook_id) then
        raise foreign_key_violation using message = format('notifications name the webhook %s', old.webhook_id), table = 'notification';
    end if;
    if exists (select from alert where webhook_id = old.webhook_id) then
        raise foreign_key_violation using message = format('alerts name the webhook %s', old.webhook_id), table = 'alert';
    end if;
    return null;
end
$$;
-- +goose StatementEnd

alter table alert drop constraint alert_webhook_id_fkey;
