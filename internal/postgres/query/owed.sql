-- name: OwedInAll :one
-- How many messages are owed, counted up to a bound, and the age of the oldest:
-- ids ascend as time goes on.
select (select count(*) from (select from outbox o order by o.notification_id limit @most::int) few) as counted,
       coalesce((
           select extract(epoch from now() - n.created_at)
           from (select notification_id from outbox order by notification_id limit 1) o
           join notification n using (notification_id)), 0)::double precision as oldest_seconds;

-- name: OwedTo :one
-- The same for one tenant. Beyond the bound the oldest is that of the first so many
-- rows that were counted, or of the first so many of all tenants.
with counted as materialized (
    select o.notification_id
    from webhook w
    cross join lateral (
        select o.notification_id from outbox o where o.webhook_id = w.webhook_id limit @most::int
    ) o
    where w.tenant_id = @tenant_id
    limit @most::int
), oldest as (
    (select c.notification_id from counted c order by c.notification_id limit 1)
    union all
    (select o.notification_id
     from (select notification_id, webhook_id from outbox order by notification_id limit @most::int) o
     join webhook w using (webhook_id)
     where w.tenant_id = @tenant_id
     order by o.notification_id
     limit 1)
)
select (select count(*) from counted) as counted,
       coalesce((
           select max(extract(epoch from now() - n.created_at))
           from oldest join notification n using (notification_id)), 0)::double precision as oldest_seconds;

-- name: OwedEstimate :one
-- How many rows the outbox has, as Postgres counts them beside their transactions,
-- and how many of those on a sample of its pages, always the same, are a tenant's.
select pg_stat_get_live_tuples('outbox'::regclass)::bigint as live,
       count(*) as sampled,
       count(*) filter (where w.tenant_id = @tenant_id) as own
from outbox o tablesample system (least(100, 100.0 * 1048576 / greatest(pg_relation_size('outbox'), 1))) repeatable (1)
join webhook w using (webhook_id);

-- name: OwedLive :one
select pg_stat_get_live_tuples('outbox'::regclass)::bigint as live;
