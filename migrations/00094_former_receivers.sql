-- +goose Up

-- Since which version of a webhook what a person has entered for its receiver is the same, and for which version a body was
-- rendered. An earlier body names the former receiver: it is rendered again.
alter table webhook add column inputs_version bigint not null default 0;
alter table notification_body add column webhook_version bigint not null default 0;

drop trigger audit on webhook;
create trigger audit after insert or update or delete on webhook for each row
    execute function audit_row('webhook', 'webhook_id', 'name', 'secrets', 'held_until,deleted_at,inputs_version');

-- As before, with the new column.
-- +goose StatementBegin
create or replace function body_partition_drop(keep interval) returns boolean language plpgsql set datestyle = 'ISO' as $$
declare
    old record;
begin
    select p.name, p.ends_at into old from body_partitions() p where p.ends_at < now() - keep order by p.ends_at limit 1;
    if not found then
        return false;
    end if;
    execute format('alter table notification_body detach partition %I', old.name);
    execute format(
        'insert into notification_body (notification_id, content_type, content, problem, written_at, webhook_version)
         select b.notification_id, b.content_type, b.content, b.problem, b.written_at, b.webhook_version
         from outbox o join %I b on b.notification_id = o.notification_id and b.written_at = o.body_at
         where o.body_at < %L', old.name, old.ends_at);
    execute format('drop table %I', old.name);
    return true;
end $$;
-- +goose StatementEnd

-- Messages to webhooks that were deleted while they were combined into digests: nobody can send them any more, and their
-- alerts were kept for them.
with gone as (
    delete from outbox o using webhook w
    where w.webhook_id = o.webhook_id and w.deleted_at is not null
    returning o.notification_id
)
insert into settlement (notification_id, tenant_id, status, discarded_by)
select n.notification_id, n.tenant_id, 'DISCARDED', 'Tocsin' from gone join notification n using (notification_id);
