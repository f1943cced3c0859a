-- +goose Up

-- A note is about an issue, or about a rule over a window and one of its groups. Neither hangs on alerts: the note
-- is there again when the rule fires again for the group.
alter table issue_note
    alter column application drop not null,
    alter column route drop not null,
    alter column signature drop not null,
    add column rule_id   uuid references rule on delete cascade,
    add column group_key text collate "C",
    add constraint about_one_thing check (
        num_nonnulls(application, route, signature) = case when rule_id is null then 3 else 0 end and (rule_id is null) = (group_key is null)
    );

create index issue_note_of_rule on issue_note (rule_id, group_key, written_at desc, note_id desc) where rule_id is not null;

-- +goose StatementBegin
create function rule_takes_notes() returns trigger language plpgsql as $$
begin
    delete from issue_note where rule_id = new.rule_id;
    return null;
end
$$;
-- +goose StatementEnd

create trigger rule_takes_notes after update of deleted_at on rule for each row
    when (new.deleted_at is not null) execute function rule_takes_notes();

-- As before, but what has no name of its own is named as its rule.
-- +goose StatementBegin
create or replace function audit_row() returns trigger language plpgsql as $$
declare
    was    jsonb := case when tg_op <> 'INSERT' then to_jsonb(old) end;
    became jsonb := case when tg_op <> 'DELETE' then to_jsonb(new) end;
    whole  jsonb := coalesce(became, was);
    name   text := coalesce(whole->>tg_argv[2], (select r.name from rule r where r.rule_id = (whole->>'rule_id')::uuid));
    action text := case tg_op when 'INSERT' then 'create' else lower(tg_op) end;
    masked text[] := string_to_array(tg_argv[3], ',');
    hidden text[] := string_to_array(tg_argv[4], ',') || array[tg_argv[1], 'tenant_id', 'version', 'created_at', 'updated_at'];
begin
    if tg_op = 'UPDATE' then
        if was->>'deleted_at' is null and became->>'deleted_at' is not null then
            action := 'delete';
        end if;
        hidden := hidden || array(select key from jsonb_each(was) e where e.value = became->e.key);
    end if;
    was := (select jsonb_object_agg(key, case when key = any(masked) and value <> 'null' then '"(secret)"' else value end)
            from jsonb_each(was) where not key = any(hidden));
    became := (select jsonb_object_agg(key, case when key = any(masked) and value <> 'null' then '"(secret)"' else value end)
               from jsonb_each(became) where not key = any(hidden));
    if tg_op <> 'UPDATE' or became is not null then
        perform audit_write(whole->>'tenant_id', action, tg_argv[0], whole->>tg_argv[1], name, was, became);
    end if;
    return null;
end
$$;
-- +goose StatementEnd
