-- +goose Up

-- The foreign keys that each alert and each notification was checked against,
-- row by row, took a third of a commit. What they hold is held otherwise: rules
-- and webhooks that anything names cannot be deleted, alerts take their
-- notifications with them, and whoever inserts a row holds what it names until
-- the transaction ends. An alert is inserted under its rule's row in rule_state
-- or rule_failing, which refer to the rule; a notification under its alert, which
-- is of the same transaction or locked by it, and under its webhook's key.

-- +goose StatementBegin
create function rule_is_named() returns trigger language plpgsql as $$
begin
    if exists (select from alert where rule_id = old.rule_id) then
        raise foreign_key_violation using message = format('alerts name the rule %s', old.rule_id), table = 'alert';
    end if;
    return null;
end
$$;
-- +goose StatementEnd

-- Fires after the keys that cascade from a rule, which wait for a commit that is
-- under way: its alerts are seen.
create trigger rule_is_named after delete or update of rule_id on rule for each row execute function rule_is_named();

-- +goose StatementBegin
create function webhook_is_named() returns trigger language plpgsql as $$
begin
    if exists (select from notification where webhook_id = old.webhook_id) then
        raise foreign_key_violation using message = format('notifications name the webhook %s', old.webhook_id), table = 'notification';
    end if;
    return null;
end
$$;
-- +goose StatementEnd

create trigger webhook_is_named after delete or update of webhook_id on webhook for each row execute function webhook_is_named();

-- +goose StatementBegin
create function alert_takes_notifications() returns trigger language plpgsql as $$
begin
    delete from notification n using gone g where n.alert_id = g.alert_id;
    return null;
end
$$;
-- +goose StatementEnd

create trigger alert_takes_notifications after delete on alert referencing old table as gone
    for each statement execute function alert_takes_notifications();

alter table alert drop constraint alert_rule_id_fkey;
alter table notification
    drop constraint notification_alert_id_fkey,
    drop constraint notification_webhook_id_fkey;

-- The newest comes last. Rows come in this order, so that an index whose pages
-- are filled at its end stays half as large, and is read backwards as well.
drop index alert_listed;
drop index alert_newest_change;
drop index notification_of_tenant;
create index alert_listed on alert (tenant_id, state, fired_at, alert_id, rule_id, severity,
                                    hashtext(application), hashtext(route), signature);
create index alert_newest_change on alert (tenant_id, change);
create index notification_of_tenant on notification (tenant_id, created_at, notification_id);
