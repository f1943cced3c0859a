-- name: RetryLock :exec
-- Allows one retry of many messages at a time in a tenant: two that lock the same rows in different
-- orders would deadlock.
select pg_advisory_xact_lock(hashtext('tocsin retry'), hashtext(@tenant_id::text));

-- name: RetryTarget :one
-- Returns a notification that a person wants to send again. Its webhook cannot be deleted before
-- the transaction ends.
select s.notification_id, s.status, s.digest_id, w.webhook_id, w.name as webhook_name, w.enabled, w.disabled_reason,
       w.deleted_at is not null as deleted, (s.quiet_until is not null)::boolean as quiet
from notification_status s
join webhook w using (webhook_id)
where s.tenant_id = @tenant_id and s.notification_id = @notification_id
for key share of w;

-- name: RetryWebhooks :many
-- Returns the webhooks that accept messages. None can be deleted before the transaction ends.
select webhook_id from webhook
where tenant_id = @tenant_id and enabled and deleted_at is null
for key share;

-- name: RetryHold :exec
-- Locks the alerts of messages that are sent again, as every transaction that writes messages about
-- them does. A digest is about the alerts of its messages.
select from alert
where alert_id in (
    select n.alert_id from notification n
    where n.notification_id = any(@ids::uuid[] || array(select m.notification_id from digest_member m where m.digest_id = any(@ids::uuid[]))))
order by alert_id
for no key update;

-- name: RetryInOrderLock :exec
-- Locks the open messages that the statement after this one orders, so that none is gathered into a digest meanwhile. That
-- statement finds a message that is being gathered at the moment in its digest.
with messages as materialized (
    select p.notification_id
    from (select distinct n.alert_id, n.webhook_id from notification n where n.about is null
              and n.notification_id = any(@ids::uuid[] || array(select d.notification_id from digest_member d where d.digest_id = any(@ids::uuid[])))) t
    join notification p on p.alert_id = t.alert_id and p.webhook_id = t.webhook_id and p.about is null
    order by p.notification_id
)
select from messages m cross join lateral (select from outbox o where o.notification_id = m.notification_id for no key update) r;

-- name: RetryInOrder :exec
-- Makes open messages wait for each other, in the order in which they were written, for the alerts
-- and webhooks of some messages, or of the messages of some digests. A message that is being attempted waits for nothing, and so does a
-- digest in the place of its messages. A claimant whose lease has expired may have begun an attempt;
-- its outcome is unknown.
with messages as materialized (
    select p.alert_id, p.webhook_id, p.created_at, p.notification_id as own, coalesce(m.digest_id, p.notification_id) as message
    from (select distinct n.alert_id, n.webhook_id from notification n where n.about is null
              and n.notification_id = any(@ids::uuid[] || array(select d.notification_id from digest_member d where d.digest_id = any(@ids::uuid[])))) t
    join notification p on p.alert_id = t.alert_id and p.webhook_id = t.webhook_id and p.about is null
    left join digest_member m on m.notification_id = p.notification_id
    order by coalesce(m.digest_id, p.notification_id)
), open as materialized (
    select m.alert_id, m.webhook_id, m.created_at, m.own, r.notification_id, r.attempts, r.claim_token, r.claimed_by, r.begun_at, r.free, r.followed, r.after_id
    from messages m cross join lateral (
        select o.notification_id, o.attempts, o.claim_token, o.claimed_by, o.begun_at, o.claim_token is null or o.due_at <= now() as free, o.followed, o.after_id
        from outbox o where o.notification_id = m.message for no key update
    ) r
), ordered as (
    select w.*, lag(w.notification_id) over (partition by w.alert_id, w.webhook_id order by w.created_at, w.own) as before,
           lead(w.notification_id) over (partition by w.alert_id, w.webhook_id order by w.created_at, w.own) as next from open w
), placed as materialized (
    select c.notification_id, c.attempts, c.claim_token, c.claimed_by, c.begun_at, c.followed as was_followed, c.after_id,
           coalesce(bool_or(c.next <> c.notification_id), false) as followed,
           (array_agg(c.before) filter (where c.own = c.notification_id and c.free))[1] as before
    from ordered c
    group by c.notification_id, c.attempts, c.claim_token, c.claimed_by, c.begun_at, c.followed, c.after_id
), unknown as (
    insert into attempt (notification_id, attempt, claim_token, replica, started_at)
    select p.notification_id, p.attempts, p.claim_token, coalesce(p.claimed_by, ''), p.begun_at
    from placed p
    where p.before is not null and p.begun_at is not null and p.claim_token is not null
    on conflict do nothing
), moved as materialized (
    select p.notification_id, p.followed, p.before from placed p
    where p.followed and not p.was_followed or p.before is distinct from p.after_id and p.before is not null
)
update outbox o
set followed = o.followed or p.followed, after_id = coalesce(p.before, o.after_id),
    ready_at = case when p.before is null then o.ready_at end, due_at = case when p.before is null then o.due_at end,
    claim_token = case when p.before is null then o.claim_token end, claimed_by = case when p.before is null then o.claimed_by end,
    begun_at = case when p.before is null or o.claim_token is null then o.begun_at end
from moved p
where o.notification_id = any(array(select m.notification_id from moved m)) and o.notification_id = p.notification_id;

-- name: RetrySettled :execrows
-- Makes settled notifications due again at once, with a new schedule, under the next generation.
-- Their attempts keep their numbering, and the attempt that ended each is recorded as its own row.
-- They are ready from the time of the write and not of the transaction, which may have begun long
-- before. Retention cannot delete them meanwhile. A body that was refused, or that is a fallback,
-- is rendered again; any other body is sent unchanged. A digest that is empty, because its members
-- left it, stays as it is.
with revived as (
    delete from settlement s
    where s.notification_id = any(@ids::uuid[]) and s.status = any(@statuses::text[])
      and exists (
          select from notification n
          where n.notification_id = s.notification_id and n.webhook_id = any(@webhook_ids::uuid[])
            and (n.reason <> 'DIGEST' or exists (select from digest_content m where m.digest_id = n.notification_id)))
    returning s.*
), ended as (
    insert into attempt (notification_id, attempt, claim_token, replica, started_at, finished_at, verdict, status_code, error, response,
                         duration_us, response_head)
    select r.notification_id, r.attempt, r.claim_token, r.replica, r.started_at, r.settled_at, r.verdict, r.status_code, r.error, r.response,
           r.duration_us, r.response_head
    from revived r where r.attempt is not null
    on conflict (notification_id, attempt) do update set started_at = excluded.started_at
), again as (
    select n.notification_id, n.webhook_id, n.reason = 'DIGEST' as digest,
           greatest(r.attempt, coalesce((select max(a.attempt) from attempt a where a.notification_id = r.notification_id), 0)) as attempts,
           r.verdict,
           coalesce((select max(y.generation) from retry y where y.notification_id = r.notification_id), 0) + 1 as generation
    from revived r join notification n using (notification_id)
    for key share of n
), noted as (
    insert into retry (notification_id, generation, retried_by)
    select notification_id, generation, @actor::text from again
), rerendered as (
    delete from notification_body b
    using again
    where b.notification_id = again.notification_id
      and (b.problem <> '' or 'REFUSED' = coalesce(again.verdict, (
          select a.verdict from attempt a where a.notification_id = b.notification_id and a.verdict is not null
          order by a.attempt desc limit 1)))
    returning b.notification_id
)
insert into outbox (notification_id, webhook_id, ready_at, digest, attempts, begun_before, generation, alone, body_at)
select a.notification_id, a.webhook_id, clock_timestamp(), a.digest, a.attempts, a.attempts, a.generation, @alone::boolean,
       (select max(b.written_at) from notification_body b
        where b.notification_id = a.notification_id and b.notification_id not in (select rerendered.notification_id from rerendered))
from again a;

-- name: RetryWaiting :execrows
-- Makes notifications due that wait for their next attempt, with a new schedule, under the next
-- generation. These stay as they are:
--
-- - a notification that is being attempted;
-- - one that was not attempted since it was last sent again: it is due already, or waits for an
--   earlier one of its alert;
-- - one that quiet hours hold, unless a person chose it by itself.
--
-- A claimant that lost its lease may have begun an attempt; its outcome is unknown.
with waiting as (
    select o.notification_id, o.attempts, o.claim_token, o.claimed_by, o.begun_at
    from outbox o
    where o.notification_id = any(@ids::uuid[]) and o.webhook_id = any(@webhook_ids::uuid[])
      and (o.attempts > o.begun_before and (o.claim_token is null or o.due_at <= now())
           or o.quiet_until is not null and o.after_id is null and @alone::boolean)
    for update
), unknown as (
    insert into attempt (notification_id, attempt, claim_token, replica, started_at)
    select t.notification_id, t.attempts, t.claim_token, coalesce(t.claimed_by, ''), t.begun_at
    from waiting t
    where t.begun_at is not null and t.claim_token is not null
    on conflict do nothing
), rerendered as (
    delete from notification_body b using waiting w where b.notification_id = w.notification_id and b.problem <> ''
    returning b.notification_id
), hastened as (
    update outbox o
    set due_at = case when o.after_id is null then now() end, ready_at = case when o.after_id is null then clock_timestamp() end, since = clock_timestamp(), counted = 0, generation = o.generation + 1, begun_before = o.attempts, alone = @alone::boolean,
        claim_token = null, claimed_by = null, begun_at = null, expires_at = null, quiet_until = null,
        body_at = case when o.notification_id not in (select rerendered.notification_id from rerendered) then o.body_at end
    from waiting
    where o.notification_id = waiting.notification_id
    returning o.notification_id, o.generation
)
insert into retry (notification_id, generation, retried_by)
select notification_id, generation, @actor::text from hastened;

-- name: RetriedWebhooks :many
-- Returns the webhooks for which some messages are open.
select distinct webhook_id from outbox where notification_id = any(@ids::uuid[]);

-- name: RetryUnderWay :one
-- Returns whether a notification is being attempted, and whether it waits for an earlier one of its
-- alert.
select coalesce(bool_or(o.claim_token is not null and o.due_at > now()), false)::boolean as under_way,
       coalesce(bool_or(o.after_id is not null), false)::boolean as waits
from outbox o where o.notification_id = @notification_id;

-- name: RetryLeave :execrows
-- Takes a notification out of a settled digest, and makes it due by itself.
with settled as (
    select s.notification_id from settlement s where s.notification_id = @digest_id for share
), gone as (
    delete from digest_member m
    using settled
    where m.notification_id = @notification_id and m.digest_id = settled.notification_id
    returning m.notification_id
), again as (
    select n.notification_id, n.webhook_id,
           coalesce((select max(a.attempt) from attempt a where a.notification_id = n.notification_id), 0) as attempts,
           coalesce((select max(y.generation) from retry y where y.notification_id = n.notification_id), 0) + 1 as generation
    from gone join notification n using (notification_id)
    for key share of n
), noted as (
    insert into retry (notification_id, generation, retried_by)
    select notification_id, generation, @actor::text from again
)
insert into outbox (notification_id, webhook_id, ready_at, attempts, begun_before, generation, alone)
select notification_id, webhook_id, clock_timestamp(), attempts, attempts, generation, true from again;

-- name: RetriesOf :many
select * from retry where notification_id = @notification_id order by generation;

-- name: DiscardSettled :execrows
-- Gives up messages that were refused or exhausted.
update settlement s
set status = 'DISCARDED', discarded_by = @actor::text
where s.notification_id = any(@ids::uuid[]) and s.status in ('FAILED', 'EXHAUSTED');

-- name: DiscardWaiting :execrows
-- Gives up messages that wait. A message that is being attempted stays as it is.
with gone as (
    delete from outbox o
    where o.notification_id = any(@ids::uuid[]) and (o.claim_token is null or o.due_at <= now())
    returning o.notification_id, o.attempts, o.claim_token, o.claimed_by, o.begun_at
), unknown as (
    insert into attempt (notification_id, attempt, claim_token, replica, started_at)
    select t.notification_id, t.attempts, t.claim_token, coalesce(t.claimed_by, ''), t.begun_at
    from gone t where t.begun_at is not null and t.claim_token is not null
    on conflict do nothing
)
insert into settlement (notification_id, tenant_id, status, discarded_by)
select n.notification_id, n.tenant_id, 'DISCARDED', @actor::text from gone join notification n using (notification_id);
