-- name: WaitingCount :one
-- Counts the messages that wait for a tenant or, without one, for all tenants, up to a number, and
-- returns the age of the oldest. Messages before the bounds of looks, and those that wait for
-- another message, do not count. Ids ascend with time. If there are more messages than the number,
-- the oldest is the one with the least id, either among the counted rows or among that many first
-- rows of all tenants.
with known as (
    select unnest(@webhook_ids::uuid[]) as webhook_id, unnest(@bounds::timestamptz[]) as at
), counted as materialized (
    select o.notification_id
    from webhook w
    left join known using (webhook_id)
    cross join lateral (
        select o.notification_id from outbox o
        where o.webhook_id = w.webhook_id and o.ready_at >= coalesce(known.at, '-infinity')
        limit @most::int
    ) o
    where sqlc.narg(tenant_id)::text is null or w.tenant_id = sqlc.narg(tenant_id)::text
    limit @most::int
), oldest as (
    (select c.notification_id from counted c order by c.notification_id limit 1)
    union all
    (select o.notification_id
     from (
         select f.notification_id, f.webhook_id from outbox f
         where (select count(*) from counted) >= @most::int
         order by f.notification_id limit @most::int
     ) o
     join webhook w using (webhook_id)
     where sqlc.narg(tenant_id)::text is null or w.tenant_id = sqlc.narg(tenant_id)::text
     order by o.notification_id
     limit 1)
)
select (select count(*) from counted) as counted,
       coalesce((
           select max(extract(epoch from now() - n.created_at))
           from oldest join notification n using (notification_id)), 0)::double precision as oldest_seconds;

-- name: WaitingEstimate :one
-- Returns how many rows the outbox has, by the statistics of Postgres. Also returns how many rows
-- are on a fixed sample of its pages, and how many of these belong to a tenant.
select pg_stat_get_live_tuples('outbox'::regclass)::bigint as live,
       count(*) as sampled,
       count(*) filter (where w.tenant_id = @tenant_id) as own
from outbox o tablesample system (least(100, 100.0 * 1048576 / greatest(pg_relation_size('outbox'), 1))) repeatable (1)
join webhook w using (webhook_id);

-- name: WaitingLive :one
select pg_stat_get_live_tuples('outbox'::regclass)::bigint as live;
