-- +goose Up

-- By what receivers know alerts: the ids that they have given to what messages opened there,
-- for the messages that change it.
create table receiver_reference (
    alert_id   uuid not null references alert on delete cascade,
    webhook_id uuid not null,
    reference  text not null,
    primary key (alert_id, webhook_id)
);
