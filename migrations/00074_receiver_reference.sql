-- +goose Up

-- By what receivers know alerts: the ids that they have given to what messages opened there,
-- for the messages that change it. An outcome is stored without a lock on its alert, which whoever
-- changes the alert holds while waiting for the message: so nothing refers to the alert, and what
-- is left of a deleted one goes with it.
create table receiver_reference (
    alert_id   uuid not null,
    webhook_id uuid not null,
    reference  text not null,
    primary key (alert_id, webhook_id)
);

-- +goose StatementBegin
create or replace function alert_takes_handling() returns trigger language plpgsql as $$
begin
    delete from alert_assignment h using gone g where h.alert_id = g.alert_id;
    delete from alert_snooze z using gone g where z.alert_id = g.alert_id;
    delete from alert_escalation e using gone g where e.alert_id = g.alert_id;
    delete from receiver_reference f using gone g where f.alert_id = g.alert_id;
    return null;
end $$;
-- +goose StatementEnd
