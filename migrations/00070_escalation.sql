-- +goose Up

-- The next step of each alert that escalates, as its routing says. It goes out when it is due, unless
-- somebody looks after the alert by then. It is written when the alert fires; whoever moves it on
-- holds the alert.
create table alert_escalation (
    alert_id      uuid primary key,
    tenant_id     text not null,
    after_minutes integer not null,
    due_at        timestamptz not null
);

create index alert_escalation_due on alert_escalation (due_at);

-- +goose StatementBegin
create or replace function alert_takes_handling() returns trigger language plpgsql as $$
begin
    delete from alert_assignment h using gone g where h.alert_id = g.alert_id;
    delete from alert_snooze z using gone g where z.alert_id = g.alert_id;
    delete from alert_escalation e using gone g where e.alert_id = g.alert_id;
    return null;
end $$;
-- +goose StatementEnd

-- A program before this one cannot read a policy with an escalation, nor say what escalated.
update schema_compatibility set least = 70;
