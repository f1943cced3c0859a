-- +goose Up

-- Bodies are most of what is stored, and retention drops them by partitions. The instant
-- at which a body is written says in which one it is; the outbox names it, so that a
-- look-up goes to one partition, and only the body that it names is ever sent.
alter table outbox add column body_at timestamptz;
update outbox o set body_at = now() from notification_body b where b.notification_id = o.notification_id;

-- What is there becomes the first partition.
alter table notification_body rename to notification_body_first;
alter table notification_body_first add column written_at timestamptz not null default now();
alter table notification_body_first alter column written_at drop default, drop constraint notification_body_pkey;

create table notification_body (
    notification_id uuid not null,
    content_type    text not null,
    content         bytea not null,
    problem         text not null default '',
    written_at      timestamptz not null,
    primary key (notification_id, written_at)
) partition by range (written_at);

-- What no partition is there for: of instants for which none was made in time, and what is
-- still open when its partition is dropped. It is deleted row by row.
create table notification_body_rest partition of notification_body default;
create index notification_body_rest_written on notification_body_rest (written_at);

-- +goose StatementBegin
do $$
begin
    execute format('alter table notification_body attach partition notification_body_first for values from (minvalue) to (%L)',
                   now() + interval '1 microsecond');
end $$;
-- +goose StatementEnd

-- The partitions of bodies but the rest, with their ends.
-- +goose StatementBegin
create function body_partitions() returns table (name text, ends_at timestamptz) language plpgsql stable set datestyle = 'ISO' as $$
begin
    return query
    select p.relname, p.bounds[1]::timestamptz
    from (
        select c.relname::text as relname, regexp_match(pg_get_expr(c.relpartbound, c.oid), 'TO \(''(.*)''\)') as bounds
        from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'notification_body'::regclass
    ) p
    where p.bounds is not null;
end $$;
-- +goose StatementEnd

-- Makes partitions until two lie ahead, each as wide as said, and returns how many. Of a
-- range of which the rest holds rows already, none is made.
-- +goose StatementBegin
create function body_partitions_ahead(width interval) returns integer language plpgsql set datestyle = 'ISO' as $$
declare
    made   integer := 0;
    begins timestamptz := greatest((select max(p.ends_at) from body_partitions() p), now());
    name   text;
begin
    for i in 1..3 loop
        exit when begins >= now() + 2 * width;
        name := 'notification_body_' || (extract(epoch from begins) * 1000000)::bigint;
        begin
            execute format('create table %I partition of notification_body for values from (%L) to (%L)', name, begins, begins + width);
            execute format('alter table %I set (autovacuum_vacuum_insert_scale_factor = 1)', name);
            made := made + 1;
        exception when check_violation then
            null;
        end;
        begins := begins + width;
    end loop;
    return made;
end $$;
-- +goose StatementEnd

-- Drops the oldest partition that ended so long ago, and returns whether there was one.
-- Bodies of messages that are still open go to the rest.
-- +goose StatementBegin
create function body_partition_drop(keep interval) returns boolean language plpgsql set datestyle = 'ISO' as $$
declare
    old record;
begin
    select p.name, p.ends_at into old from body_partitions() p where p.ends_at < now() - keep order by p.ends_at limit 1;
    if not found then
        return false;
    end if;
    execute format('alter table notification_body detach partition %I', old.name);
    execute format(
        'insert into notification_body (notification_id, content_type, content, problem, written_at)
         select b.notification_id, b.content_type, b.content, b.problem, b.written_at
         from outbox o join %I b on b.notification_id = o.notification_id and b.written_at = o.body_at
         where o.body_at < %L', old.name, old.ends_at);
    execute format('drop table %I', old.name);
    return true;
end $$;
-- +goose StatementEnd

select body_partitions_ahead(interval '3 days');

-- Programs before this one write bodies without their instant.
update schema_compatibility set least = 33;
