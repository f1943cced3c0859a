-- +goose Up

-- Many alerts are assigned at once, and that can be undone.
alter table alert_action
    drop constraint alert_action_action_check,
    add constraint alert_action_action_check check (action in ('acknowledge', 'resolve', 'assign'));

-- Who handled the alerts that an action assigned, before it did; nobody where assignee is null.
-- An alert that nothing has changed since bears the change. It is there for as long as its action
-- is known.
create table alert_assignment_before (
    tenant_id   text not null,
    action_id   uuid not null,
    alert_id    uuid not null,
    change      bigint not null,
    assignee    text,
    assigned_by text,
    assigned_at timestamptz,
    primary key (tenant_id, action_id, alert_id),
    foreign key (tenant_id, action_id) references alert_action on delete cascade
);

-- Assigning many alerts is one entry of the audit log, as changing the state of many is.
-- +goose StatementBegin
create function audit_assigned(was text, became text, ids uuid[]) returns void language sql as $$
    select audit_write(a.tenant_id, 'update', 'alert', case when count(*) = 1 then min(a.alert_id::text) end, case when count(*) = 1 then min(a.title) end,
                       jsonb_build_object('assignee', was),
                       jsonb_build_object('assignee', became)
                           || case when count(*) > 1
                              then jsonb_build_object('alerts', count(*), 'ids', (array_agg(a.alert_id::text order by a.alert_id))[1:100])
                              else '{}' end)
    from alert a
    where a.alert_id = any(ids)
    group by a.tenant_id
$$;
-- +goose StatementEnd

-- +goose StatementBegin
create function audit_assignments() returns trigger language plpgsql as $$
begin
    case tg_op
    when 'INSERT' then
        perform audit_assigned(null, c.became, c.ids)
        from (select n.assignee as became, array_agg(n.alert_id) as ids from after_rows n group by n.assignee) c;
    when 'UPDATE' then
        perform audit_assigned(c.was, c.became, c.ids)
        from (select o.assignee as was, n.assignee as became, array_agg(n.alert_id) as ids
              from before_rows o join after_rows n using (alert_id)
              where o.assignee <> n.assignee
              group by o.assignee, n.assignee) c;
    else
        perform audit_assigned(c.was, null, c.ids)
        from (select o.assignee as was, array_agg(o.alert_id) as ids from before_rows o group by o.assignee) c;
    end case;
    return null;
end
$$;
-- +goose StatementEnd

drop trigger audit on alert_assignment;
create trigger audit_of_assignment after insert on alert_assignment referencing new table as after_rows
    for each statement when (current_setting('tocsin.actor', true) <> '') execute function audit_assignments();
create trigger audit_of_reassignment after update on alert_assignment referencing old table as before_rows new table as after_rows
    for each statement when (current_setting('tocsin.actor', true) <> '') execute function audit_assignments();
create trigger audit_of_end_of_assignment after delete on alert_assignment referencing old table as before_rows
    for each statement when (current_setting('tocsin.actor', true) <> '') execute function audit_assignments();

-- Messages in Slack also show who handles an alert and until when it is snoozed. Whoever writes
-- either holds the alert, so this and the entry of a message see each other. As with a change of
-- the state, of what one statement changes the newest 500 messages of each webhook follow.
-- +goose StatementBegin
create function slack_update_handling() returns trigger language plpgsql as $$
begin
    insert into slack_update (message_id, webhook_id)
    select newest.message_id, newest.webhook_id
    from (
        select m.message_id, m.webhook_id,
               row_number() over (partition by m.webhook_id order by m.message_id desc) as place
        from touched t
        join slack_message m using (alert_id)
        join alert a using (alert_id)
        where a.state <> 'RESOLVED'
    ) newest
    where newest.place <= 500
    order by newest.message_id
    on conflict (message_id) do update
    set generation = excluded.generation, attempts = 0,
        due_at = case when slack_update.claim_token is null then now() else slack_update.due_at end;
    return null;
end
$$;
-- +goose StatementEnd

create trigger assignment_is_shown after insert on alert_assignment referencing new table as touched
    for each statement execute function slack_update_handling();
create trigger reassignment_is_shown after update on alert_assignment referencing new table as touched
    for each statement execute function slack_update_handling();
create trigger end_of_assignment_is_shown after delete on alert_assignment referencing old table as touched
    for each statement execute function slack_update_handling();
create trigger snooze_is_shown after insert on alert_snooze referencing new table as touched
    for each statement execute function slack_update_handling();
create trigger longer_snooze_is_shown after update on alert_snooze referencing new table as touched
    for each statement execute function slack_update_handling();
create trigger end_of_snooze_is_shown after delete on alert_snooze referencing old table as touched
    for each statement execute function slack_update_handling();
