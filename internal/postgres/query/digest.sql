-- name: DigestWaiting :many
-- Returns for webhooks how many due digests are claimed before the messages that wait without an attempt, and whether
-- there are more of these messages than the bounds allow. A digest whose repetition became due after such a message is
-- claimed after it.
select d.webhook_id::uuid as webhook_id,
       (select count(*) from outbox o
        where o.webhook_id = d.webhook_id and o.digest and o.ready_at >= d.first_at and o.ready_at <= now() and o.due_at <= now()
          and o.ready_at <= coalesce(oldest.ready_at, now())) as digests,
       exists (
           select from outbox o
           where o.webhook_id = d.webhook_id and o.ready_at >= d.first_at and o.ready_at <= now() and o.due_at <= now()
             and o.attempts = o.begun_before and not o.digest and not o.alone and coalesce(o.expires_at > now(), true)
           offset d.above
       )::boolean as gather
from (select unnest(@webhook_ids::uuid[]) as webhook_id, unnest(@first_at::timestamptz[]) as first_at, unnest(@above::int[]) as above) d
cross join lateral (
    select min(o.ready_at) as ready_at from outbox o
    where o.webhook_id = d.webhook_id and o.ready_at >= d.first_at and o.ready_at <= now() and o.due_at <= now()
      and o.attempts = o.begun_before and not o.digest and not o.alone and coalesce(o.expires_at > now(), true)
) oldest;

-- name: DigestGather :one
-- Gathers the messages that wait without an attempt for a webhook into a digest, oldest first,
-- unless there are no more of them than the webhook's bound. Messages that are of no use any more end here,
-- all at once. Messages that another replica holds at the moment do not count, nor do those that became
-- ready before the given instant. This is one statement, so a row is either in the digest or still waits, never
-- both. The webhook cannot be deleted meanwhile: that would not find the digest. Nothing is gathered for one that
-- somebody edits or deletes at the moment. Returns the size, 0 if nothing was gathered, and how many ended.
with held as materialized (select w.tenant_id from webhook w where w.webhook_id = @webhook_id and w.deleted_at is null for key share skip locked),
taken as (
    select o.notification_id, o.ready_at,
           o.generation = 0 and exists (
               select from notification n where n.notification_id = o.notification_id
                 and n.reason in ('ESCALATED', 'ACKNOWLEDGED', 'RESOLVED', 'REOPENED') and needless(n.notification_id, @undo_within)) as needless
    from outbox o
    where o.webhook_id = @webhook_id and o.ready_at >= @first_at::timestamptz and o.ready_at <= now() and o.due_at <= now()
      and o.attempts = o.begun_before and not o.digest and not o.alone and coalesce(o.expires_at > now(), true) and exists (select from held)
    order by o.ready_at, o.notification_id
    limit @most::int
    for update skip locked
), enough as (
    select count(*)::int as size, min(ready_at) as ready_at from taken where not needless having count(*) > @above::int
), ended as (
    delete from outbox o using taken t where t.needless and o.notification_id = t.notification_id
    returning o.notification_id, o.attempts
), settled as (
    insert into settlement (notification_id, tenant_id, status, discarded_by, attempt, claim_token, replica, started_at, verdict, error, response, duration_us)
    select e.notification_id, n.tenant_id, 'DISCARDED', @discarded_by::text, e.attempts + 1, random_token(), @replica::text, now(), 'NOT_MADE',
           case when n.reason = 'ESCALATED' then @handled::text else @not_notified::text end, '', 0
    from ended e join notification n using (notification_id)
), entered as (
    insert into notification (notification_id, tenant_id, webhook_id, reason)
    select @digest_id::uuid, held.tenant_id, @webhook_id::uuid, 'DIGEST'
    from enough cross join held
), sized as (
    insert into digest (notification_id, size) select @digest_id::uuid, size from enough
), joined as (
    insert into digest_member (notification_id, digest_id)
    select t.notification_id, @digest_id::uuid from enough cross join taken t where not t.needless
    returning notification_id
), gone as (
    delete from outbox o using joined j where o.notification_id = j.notification_id
), waiting as (
    insert into outbox (notification_id, webhook_id, due_at, ready_at, digest)
    select @digest_id::uuid, @webhook_id, ready_at, ready_at, true from enough
)
select coalesce((select size from enough), 0)::int as size, (select count(*) from ended)::int as ended;

-- name: DigestReasons :many
select n.reason, count(*) as count
from digest_content m join notification n using (notification_id)
where m.digest_id = @digest_id
group by n.reason;

-- name: DigestRules :many
-- Returns the rules with the most notifications, the most severe first, and the number of rules.
select r.rule_id, r.name, a.severity, count(*) as count, count(*) over () as of_all
from digest_content m
join notification n using (notification_id)
join alert a on a.alert_id = n.alert_id
join rule r on r.rule_id = a.rule_id
where m.digest_id = @digest_id
group by r.rule_id, r.name, a.severity
order by array_position(array['CRITICAL', 'WARNING', 'INFO'], a.severity), count(*) desc, r.name, r.rule_id
limit @most::int;

-- name: DigestPlaces :many
select a.application, a.route, count(*) as count, count(*) over () as of_all
from digest_content m
join notification n using (notification_id)
join alert a on a.alert_id = n.alert_id
where m.digest_id = @digest_id and (a.application <> '' or a.route <> '')
group by a.application, a.route
order by count(*) desc, a.application, a.route
limit @most::int;

-- name: DigestErrors :many
-- Returns the most frequent errors, ignoring numbers in their messages. For rules that cannot be
-- evaluated and webhooks that are disabled, the error is the reason.
select e.error_type::text as error_type, min(e.message)::text as message, count(*) as count, count(*) over () as of_all
from (
    select case when a.health then '' else coalesce(a.exchange ->> 'errorType', '') end as error_type,
           left(case when a.health then a.message else coalesce(a.exchange ->> 'errorMessage', '') end, 300) as message
    from digest_content m
    join notification n using (notification_id)
    join alert a on a.alert_id = n.alert_id
    where m.digest_id = @digest_id and n.reason in ('FIRED', 'REMINDER', 'SNOOZE_ENDED', 'ESCALATED', 'RULE_FAILING', 'WEBHOOK_OFF', 'WEBHOOK_FAILING', 'UNDELIVERED')
) e
where e.error_type <> '' or e.message <> ''
group by e.error_type, regexp_replace(e.message, '[0-9]+', '#', 'g')
order by count(*) desc, 1, 2
limit @most::int;

-- name: DigestSilence :one
-- Returns the silence that asked for a digest; no row if none did.
select s.silence_id, s.name, d.size, d.silenced_from::timestamptz as silenced_from, d.silenced_until::timestamptz as silenced_until
from digest d join silence s using (silence_id)
where d.notification_id = @digest_id;

-- name: DigestSpan :one
select min(a.fired_at)::timestamptz as first_at, max(a.fired_at)::timestamptz as last_at
from digest_content m
join notification n using (notification_id)
join alert a on a.alert_id = n.alert_id
where m.digest_id = @digest_id
having count(*) > 0;

-- name: DigestEnds :many
-- Returns the exchanges that started first and last.
(
    select sqlc.embed(a), r.name as rule_name, r.about as rule_about
    from digest_content m
    join notification n using (notification_id)
    join alert a on a.alert_id = n.alert_id
    join rule r on r.rule_id = a.rule_id
    where m.digest_id = @digest_id and a.execution_id is not null
    order by a.start_time_ns, a.execution_id, a.alert_id
    limit 1
)
union all
(
    select a.*, r.name, r.about
    from digest_content m
    join notification n using (notification_id)
    join alert a on a.alert_id = n.alert_id
    join rule r on r.rule_id = a.rule_id
    where m.digest_id = @digest_id and a.execution_id is not null
    order by a.start_time_ns desc, a.execution_id desc, a.alert_id desc
    limit 1
);

-- name: DigestAlerts :many
-- Returns the alerts of the members, one for each, in the order in which they were written.
select n.alert_id::uuid as alert_id
from digest_content m join notification n using (notification_id)
where m.digest_id = @digest_id
order by n.created_at, n.notification_id
limit @most::int;
