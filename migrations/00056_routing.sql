-- +goose Up

-- Who is notified of the alerts of those rules that leave it to the policy of their tenant. The
-- policy is that of alerts/routing. A tenant that has none has an empty one, of version 1.
create table routing_policy (
    tenant_id  text primary key,
    policy     jsonb not null,
    version    bigint not null,
    updated_at timestamptz not null default clock_timestamp(),
    updated_by text not null default ''
);

create trigger audit after insert or update or delete on routing_policy for each row
    execute function audit_row('routing', 'tenant_id', 'tenant_id', '', 'updated_by');

alter table rule add column use_routing_policy boolean not null default false;

-- How the alert was routed, of a rule that uses the policy; decided when it fires.
alter table alert add column routing jsonb;

-- A program before this one would notify nobody of the alerts of such rules.
update schema_compatibility set least = 56;
