-- +goose Up

-- The teams of a tenant, as alerts/teams has them. A tenant that has none has an empty list of
-- version 1.
create table team_list (
    tenant_id  text primary key,
    teams      jsonb not null,
    version    bigint not null,
    updated_at timestamptz not null default clock_timestamp(),
    updated_by text not null default ''
);

create trigger audit after insert or update or delete on team_list for each row
    execute function audit_row('teams', 'tenant_id', 'tenant_id', '', 'updated_by');

-- The groups that the OpenID Connect provider said at the last sign-in.
alter table account add column groups text[] not null default '{}';
