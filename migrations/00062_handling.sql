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

-- +goose StatementBegin
create function alert_takes_assignment() returns trigger language plpgsql as $$
begin
    delete from alert_assignment h using gone g where h.alert_id = g.alert_id;
    return null;
end $$;
-- +goose StatementEnd

create trigger alert_takes_assignment after delete on alert referencing old table as gone
    for each statement execute function alert_takes_assignment();

-- An assignment is a change of its alert.
-- +goose StatementBegin
create function audit_assignment() returns trigger language plpgsql as $$
declare
    was    text := case when tg_op <> 'INSERT' then old.assignee end;
    became text := case when tg_op <> 'DELETE' then new.assignee end;
    a      record;
begin
    select tenant_id, alert_id, title into a from alert where alert_id = case when tg_op = 'DELETE' then old.alert_id else new.alert_id end;
    if found then
        perform audit_write(a.tenant_id, 'update', 'alert', a.alert_id::text, a.title,
                            jsonb_build_object('assignee', was), jsonb_build_object('assignee', became));
    end if;
    return null;
end $$;
-- +goose StatementEnd

create trigger audit after insert or update or delete on alert_assignment for each row
    when (current_setting('tocsin.actor', true) <> '') execute function audit_assignment();
