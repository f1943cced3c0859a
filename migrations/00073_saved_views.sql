-- +goose Up

-- Filters of the inbox under a name: a person's own, and those that everybody of the tenant sees.
create table saved_view (
    view_id    uuid primary key,
    tenant_id  text not null,
    -- As alerts name who acknowledged them.
    owner      text not null,
    name       text not null check (name <> ''),
    -- The query of the inbox's address. Pages leave out what they do not know.
    search     text not null,
    shared     boolean not null,
    updated_at timestamptz not null default now(),
    constraint saved_view_named unique (tenant_id, owner, name)
);

create trigger audit after insert or update or delete on saved_view for each row
    execute function audit_row('view', 'view_id', 'name', '', '');

-- What a user shared stays for the others.
-- +goose StatementBegin
create function account_takes_views() returns trigger language plpgsql as $$
begin
    delete from saved_view where tenant_id = old.tenant_id and owner = old.email and not shared;
    return null;
end $$;
-- +goose StatementEnd

create trigger account_takes_views after delete on account for each row execute function account_takes_views();
