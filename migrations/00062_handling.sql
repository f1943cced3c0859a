-- +goose Up

-- Who handles an alert. It stands beside the alert, so that no index of that grows, and
-- nobody's alerts have no row. Whoever writes it holds the alert.
create table alert_assignment (
    alert_id    uuid primary key,
    tenant_id   text not null,
    -- As alerts name who acknowledged them.
    assignee    text not null check (assignee <> ''),
    assigned_by text not null,
    assigned_at timestamptz not null default now()
);

create index alert_assigned on alert_assignment (tenant_id, assignee);

-- Alerts that somebody wants to be reminded of at an instant, once. Whoever writes such a row
-- holds the alert; that of an alert which is resolved meanwhile is void.
create table alert_snooze (
    alert_id   uuid primary key,
    tenant_id  text not null,
    until      timestamptz not null,
    snoozed_by text not null,
    snoozed_at timestamptz not null default now()
);

create index alert_snoozed on alert_snooze (tenant_id);
create index alert_snooze_due on alert_snooze (until);

-- +goose StatementBegin
create function alert_takes_handling() returns trigger language plpgsql as $$
begin
    delete from alert_assignment h using gone g where h.alert_id = g.alert_id;
    delete from alert_snooze z using gone g where z.alert_id = g.alert_id;
    return null;
end $$;
-- +goose StatementEnd

create trigger alert_takes_handling after delete on alert referencing old table as gone
    for each statement execute function alert_takes_handling();

-- A message that a snooze has ended.
alter table notification
    drop constraint notification_reason_check,
    add constraint notification_reason_check check (reason in (
        'FIRED', 'REMINDER', 'SNOOZE_ENDED', 'RESOLVED', 'ACKNOWLEDGED', 'REOPENED', 'ESCALATED', 'RULE_FAILING', 'RULE_RECOVERED', 'WEBHOOK_OFF',
        'WEBHOOK_FAILING', 'UNDELIVERED', 'DIGEST', 'SOURCE_FAILING', 'SOURCE_RECOVERED'
    )) not valid;

-- What somebody does to either is a change of the alert. Arguments: the column, and what the
-- change is called.
-- +goose StatementBegin
create function audit_handling() returns trigger language plpgsql as $$
declare
    was    jsonb := case when tg_op <> 'INSERT' then to_jsonb(old) end;
    became jsonb := case when tg_op <> 'DELETE' then to_jsonb(new) end;
    a      record;
begin
    select tenant_id, alert_id, title into a from alert where alert_id = (coalesce(became, was)->>'alert_id')::uuid;
    if found then
        perform audit_write(a.tenant_id, 'update', 'alert', a.alert_id::text, a.title,
                            jsonb_build_object(tg_argv[1], was->tg_argv[0]), jsonb_build_object(tg_argv[1], became->tg_argv[0]));
    end if;
    return null;
end $$;
-- +goose StatementEnd

create trigger audit after insert or update or delete on alert_assignment for each row
    when (current_setting('tocsin.actor', true) <> '') execute function audit_handling('assignee', 'assignee');
create trigger audit after insert or update or delete on alert_snooze for each row
    when (current_setting('tocsin.actor', true) <> '') execute function audit_handling('until', 'snoozedUntil');
