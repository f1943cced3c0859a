-- name: SilenceDigestDue :many
-- Returns the silences whose digests are due, that come after one.
select silence_id, digest_at::timestamptz as digest_at from silence
where digest_at is not null and digest_at <= coalesce(sqlc.narg(now)::timestamptz, clock_timestamp())
  and (digest_at, silence_id) > (@after_at::timestamptz, @after_id::uuid)
order by digest_at, silence_id
limit @most;

-- name: SilenceDigestLock :one
-- Locks a silence whose digests are due. A transaction that decided by it before that instant has
-- committed by then; a later one waits, and decides by a later instant. This waits too: in a storm, some commit always holds
-- the silence.
select * from silence
where silence_id = @silence_id and digest_at is not null and digest_at <= coalesce(sqlc.narg(now)::timestamptz, clock_timestamp())
for update;

-- name: SilenceDigestWebhooks :many
-- Returns the webhooks for which a silence has suppressed messages in a time range, and whether one of
-- these is about a critical alert.
select w.webhook_id, w.preset, w.quiet_hours, bool_or(a.severity = 'CRITICAL')::boolean as critical, clock_timestamp()::timestamptz as now
from settlement s
join notification n using (notification_id)
join alert a on a.alert_id = n.alert_id
join webhook w on w.webhook_id = n.webhook_id and w.deleted_at is null
where s.silence_id = @silence_id::uuid and s.settled_at >= @since::timestamptz and s.settled_at < @until::timestamptz
group by w.webhook_id
order by w.webhook_id;

-- name: SilenceDigestWrite :many
-- Writes the digests of what a silence has suppressed in a time range: one for each webhook that is not
-- deleted, if there is something to list. It lists as many as a digest of a storm may contain, oldest first,
-- and counts the others. A digest that exists already stays as it is. What quiet hours hold (the past is
-- none) waits outside of the queue. The silence was in force from silenced_from on. Returns the webhooks whose digests are due.
with held as materialized (
    select webhook_id, digest_above from webhook where webhook_id = any(@webhook_ids::uuid[]) and deleted_at is null order by webhook_id for key share
), given as (
    select g.*, greatest(@most::int, digest_above + 1) as most from (select unnest(@webhook_ids::uuid[]) as webhook_id, unnest(@digest_ids::uuid[]) as digest_id, unnest(@quiet_untils::timestamptz[]) as quiet_until) g
    join held using (webhook_id)
), about as (
    select n.notification_id, g.digest_id, g.most, row_number() over (partition by g.digest_id order by s.settled_at, n.notification_id) as place
    from settlement s join notification n using (notification_id) join given g on g.webhook_id = n.webhook_id
    where s.silence_id = @silence_id::uuid and s.settled_at >= @since::timestamptz and s.settled_at < @until::timestamptz
      and not exists (select from digest_listing l where l.notification_id = s.notification_id)
), sized as (
    select digest_id, count(*)::int as size from about group by digest_id
), begun as (
    insert into notification (notification_id, tenant_id, webhook_id, reason)
    select g.digest_id, @tenant_id, g.webhook_id, 'DIGEST' from given g join sized using (digest_id)
    on conflict (notification_id) do nothing
    returning notification_id
), described as (
    insert into digest (notification_id, size, silence_id, silenced_from, silenced_until)
    select b.notification_id, z.size, @silence_id::uuid, @silenced_from::timestamptz, @until::timestamptz
    from begun b join sized z on z.digest_id = b.notification_id
), entered as (
    insert into digest_listing (notification_id, digest_id)
    select l.notification_id, l.digest_id from about l join begun b on b.notification_id = l.digest_id where l.place <= l.most
), waiting as (
    insert into outbox (notification_id, webhook_id, digest, quiet_until, ready_at, due_at)
    select g.digest_id, g.webhook_id, true, q.until,
           case when q.until is null then clock_timestamp() end, case when q.until is null then clock_timestamp() end
    from given g join begun b on b.notification_id = g.digest_id
    cross join lateral (select case when g.quiet_until > clock_timestamp() then g.quiet_until end as until) q
    returning webhook_id, quiet_until
)
select webhook_id from waiting where quiet_until is null;

-- name: SilenceDigestPlan :exec
-- Stores what the next digests of a silence list, and when they are due; null if never.
update silence
set digest_from = sqlc.narg(digest_from)::timestamptz, digest_at = sqlc.narg(digest_at)::timestamptz, digest_since = sqlc.narg(digest_since)::timestamptz
where silence_id = @silence_id;
