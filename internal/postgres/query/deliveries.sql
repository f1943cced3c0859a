-- name: NotificationNth :one
-- Returns the place of the notification a number of rows after a mark, newest first.
select n.created_at, n.notification_id
from notification n
where n.tenant_id = @tenant_id
  and (sqlc.narg(before_at)::timestamptz is null
       or (n.created_at, n.notification_id) < (sqlc.narg(before_at)::timestamptz, sqlc.narg(before_id)::uuid))
order by n.created_at desc, n.notification_id desc
offset @most
limit 1;

-- name: NotificationsOpen :many
-- Counts messages in the outbox by the status that the view notification_status gives them, each up
-- to a number.
select case
           when c.attempts > 1 or c.attempts = 1 and not c.claimed then 'RETRYING'
           else 'PENDING'
       end::text as status, count(*) as messages
from (
    select o.attempts, coalesce(o.claim_token is not null and o.due_at > now(), false) as claimed
    from outbox o join notification n using (notification_id)
    where n.tenant_id = @tenant_id
      and (cardinality(@webhook_ids::uuid[]) = 0 or o.webhook_id = any(@webhook_ids::uuid[]))
      and n.created_at >= coalesce(sqlc.narg(from_at)::timestamptz, '-infinity')
      and n.created_at < coalesce(sqlc.narg(to_at)::timestamptz, 'infinity')
    limit @most
) c
group by 1;

-- name: NotificationsUndelivered :many
-- Counts messages that were refused or exhausted, each up to a number. An index finds them: no age
-- excludes one.
select k.status::text as status, (
    select count(*) from (
        select from settlement s join notification n using (notification_id)
        where s.status = k.status and s.status in ('FAILED', 'EXHAUSTED') and s.tenant_id = @tenant_id
          and (cardinality(@webhook_ids::uuid[]) = 0 or n.webhook_id = any(@webhook_ids::uuid[]))
          and n.created_at >= coalesce(sqlc.narg(from_at)::timestamptz, '-infinity')
          and n.created_at < coalesce(sqlc.narg(to_at)::timestamptz, 'infinity')
        limit @most
    ) c
) as messages
from unnest(array['FAILED', 'EXHAUSTED']) k(status);

-- name: NotificationsEnded :one
-- Counts messages that were delivered, discarded or suppressed, among a number of the tenant's
-- newest. walked is how many messages, of any status, were read.
select count(*) as walked, count(*) filter (where s.status = 'DELIVERED') as delivered,
       count(*) filter (where s.status = 'DISCARDED') as discarded, count(*) filter (where s.status = 'SUPPRESSED') as suppressed
from (
    select n.notification_id, n.webhook_id from notification n
    where n.tenant_id = @tenant_id
      and n.created_at >= coalesce(sqlc.narg(from_at)::timestamptz, '-infinity')
      and n.created_at < coalesce(sqlc.narg(to_at)::timestamptz, 'infinity')
    order by n.created_at desc, n.notification_id desc
    limit @walked
) n left join settlement s on s.notification_id = n.notification_id
    and (cardinality(@webhook_ids::uuid[]) = 0 or n.webhook_id = any(@webhook_ids::uuid[]));

-- name: WebhookFlow :many
-- Counts attempts at the messages of the last 24 hours by the hour in which they began. Returns one
-- row without attempts if there are none. Of a tenant with more messages than the limit, only the
-- newest count.
with day as (
    select date_bin('1 hour', now(), 'epoch') - interval '23 hours' as since
), walked as materialized (
    select n.notification_id, n.webhook_id from notification n
    where n.tenant_id = @tenant_id and n.created_at >= (select since from day)
    order by n.created_at desc, n.notification_id desc
    limit @walked
), attempts as (
    select floor(extract(epoch from t.started_at - (select since from day)) / 3600) as hour, t.verdict, t.duration_us, t.finished_at
    from walked n join attempt_history t using (notification_id)
    where n.webhook_id = @webhook_id and t.verdict is not null
)
select day.since::timestamptz as since, (select count(*) from walked) as walked, coalesce(a.hour, 0)::integer as hour,
       count(*) filter (where a.verdict = 'DELIVERED') as delivered,
       count(*) filter (where a.verdict <> 'DELIVERED') as failed,
       coalesce(percentile_cont(0.5) within group (order by a.duration_us) filter (where a.verdict = 'DELIVERED'), -1)::double precision as median_us,
       coalesce(percentile_cont(0.95) within group (order by a.duration_us) filter (where a.verdict = 'DELIVERED'), -1)::double precision as p95_us,
       coalesce(max(a.finished_at) filter (where a.verdict = 'DELIVERED'), 'epoch')::timestamptz as last_success_at
from day left join attempts a on true
group by day.since, a.hour;
