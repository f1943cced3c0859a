-- name: OutboxBacklog :many
-- The enabled webhooks: whether any of what is owed to them may be sent now and,
-- rounded up, the microseconds until the next of it may; 0 when there is none.
-- Nothing may while the receiver has asked for a pause, nor while the breaker is
-- open or its probe, whose claim stands, is on its way. Leases count where all that
-- is ready is leased, which is never much.
--
-- The look at a webhook begins at its bound, unless it is a whole look: that is the
-- first one, one that comes a period after the last whole one, and one that finds
-- the clock set back. Beside comes the next bound. Whether anything may be sent is
-- looked for behind the place of the last claim first, before which it is unlikely.
--
-- The worker is whose claims stand right in front of the first row that may be sent, if
-- they are more than may be called at once. Who holds the last one of so many has
-- claimed, begun or renewed it of late, under a lease as long as that of who asks.
with look as materialized (
    select now() - @margin::interval as settled,
           now() < @whole_at::timestamptz or @period::interval <= now() - @whole_at::timestamptz as whole,
           now() + @lease::interval as leased, @recent::interval as recent
), known as (
    select unnest(@webhook_ids::uuid[]) as webhook_id, unnest(@bounds::timestamptz[]) as at
), place as (
    select unnest(@placed_ids::uuid[]) as webhook_id, unnest(@placed_at::timestamptz[]) as at, unnest(@placed_after::uuid[]) as after
)
select w.webhook_id, w.max_concurrent, w.rate_per_second, w.digest_above,
       rate_tokens(w.rate_per_second, s.next_send_at, now())::double precision as tokens,
       (s.opened_at is not null)::boolean as probe,
       (select count(*) from outbox o
        where o.webhook_id = w.webhook_id and o.digest and o.ready_at >= first.at and o.ready_at <= now() and o.due_at <= now()) as digests,
       case when w.digest_above > 0 and not held.now then exists (
           select from outbox o
           where o.webhook_id = w.webhook_id and o.ready_at >= first.at and o.ready_at <= now() and o.due_at <= now()
             and o.attempts = o.begun_before and not o.digest and not o.alone
           offset w.digest_above
       ) else false end::boolean as gather,
       (ripe.at is not null and not held.now)::boolean as due,
       coalesce(ahead.worker, '')::text as worker,
       coalesce(greatest(ceil(extract(epoch from
           case when held.now then greatest(held.until, coalesce(ripe.at, later.at)) else later.at end - now()
       ) * 1000000), 0), 0)::bigint as next_us,
       coalesce(first.at, now())::timestamptz as first_at,
       least(first.at, look.settled)::timestamptz as bound,
       now()::timestamptz as at,
       look.whole::boolean as whole,
       (extract(epoch from clock_timestamp() - statement_timestamp()) * 1000000)::bigint as took_us
from webhook w
join webhook_state s using (webhook_id)
cross join look
left join known using (webhook_id)
left join place using (webhook_id)
left join lateral (
    -- Looked up by its id for each webhook, whatever is believed of the outbox's size.
    select p.due_at from outbox p where p.notification_id = s.probe_id and p.claim_token = s.probe_token offset 0
) probe on true
cross join lateral (
    select greatest(w.held_until, s.open_until, probe.due_at) as until,
           coalesce(greatest(w.held_until, s.open_until, probe.due_at) > now(), false) as now
) held
cross join lateral (
    select min(o.ready_at) as at
    from outbox o
    where o.webhook_id = w.webhook_id
      and o.ready_at >= case when look.whole or known.at is null or known.at > look.settled then '-infinity' else known.at end
) first
left join lateral (
    (select o.ready_at as at, o.notification_id as id from outbox o
     where o.webhook_id = w.webhook_id and (o.ready_at, o.notification_id) > (place.at, place.after)
       and o.ready_at <= now() and o.due_at <= now()
     order by o.ready_at, o.notification_id limit 1)
    union all
    (select o.ready_at, o.notification_id from outbox o
     where o.webhook_id = w.webhook_id and o.ready_at >= first.at and o.ready_at <= now() and o.due_at <= now()
     order by o.ready_at, o.notification_id limit 1)
    limit 1
) ripe on true
left join lateral (
    select o.claimed_by as worker from (
        select o.claimed_by, o.due_at from outbox o
        where o.webhook_id = w.webhook_id and o.ready_at >= first.at and (o.ready_at, o.notification_id) < (ripe.at, ripe.id)
        order by o.ready_at desc, o.notification_id desc
        offset w.max_concurrent limit 1
    ) o
    where o.due_at > greatest(now(), look.leased - look.recent) and o.due_at <= look.leased
) ahead on true
cross join lateral (
    select least(
        (select min(o.ready_at) from outbox o where o.webhook_id = w.webhook_id and o.ready_at > now()),
        case when ripe.at is null then (
            select min(o.due_at) from outbox o where o.webhook_id = w.webhook_id and o.ready_at >= first.at and o.ready_at <= now()
        ) end
    ) as at
) later
where w.enabled;

-- name: NotificationClaim :many
-- Takes at most the wanted number of due rows of each webhook, oldest first but
-- none before the given place in the queue, each under a token of its own, until the lease ends. A digest comes with the
-- alert of one of its members. Of webhooks it tells the version only. There is a
-- frozen body only where an attempt was begun.
--
-- Where the claimant before has begun an attempt and stored no outcome, that
-- attempt is recorded as it is: nobody knows its outcome.
--
-- A rate and a probe are granted here, under a lock on the state of the webhook,
-- which is read anew once it is held. Whoever finds it locked leaves the webhook
-- to whom holds it. Webhooks without a rate whose breaker is closed take no lock.
--
-- What belongs to a row is looked up row by row, whatever is believed of the sizes of
-- the tables: the plan is made once, perhaps while they are empty.
with wanted as (
    select unnest(@webhook_ids::uuid[]) as webhook_id, unnest(@slots::int[]) as slots, unnest(@first_at::timestamptz[]) as first_at,
           unnest(@first_ids::uuid[]) as first_id
), gated as (
    select s.webhook_id, w.version, wanted.first_at, wanted.first_id, s.opened_at is not null as probe, s.next_send_at, w.rate_per_second as rate,
           case when s.opened_at is null then wanted.slots else 1 end as slots
    from wanted
    join webhook w using (webhook_id)
    join webhook_state s using (webhook_id)
    where (w.rate_per_second > 0 or s.opened_at is not null)
      and (s.opened_at is null
           or (s.open_until <= now() and not exists (
               select from outbox p
               where p.notification_id = s.probe_id and p.claim_token = s.probe_token and p.due_at > now())))
    for update of s skip locked
), room as (
    select wanted.webhook_id, w.version, wanted.first_at, wanted.first_id, wanted.slots
    from wanted
    join webhook w using (webhook_id)
    join webhook_state s using (webhook_id)
    where w.rate_per_second = 0 and s.opened_at is null
    union all
    select g.webhook_id, g.version, g.first_at, g.first_id,
           case when g.rate = 0 then g.slots
                else greatest(0, least(g.slots, floor(rate_tokens(g.rate, g.next_send_at, now()))))::int end
    from gated g
), due as (
    select o.*, room.version
    from room
    cross join lateral (
        select b.notification_id, b.attempts, b.claim_token, b.claimed_by, b.begun_at
        from outbox b
        where b.webhook_id = room.webhook_id and (b.ready_at, b.notification_id) >= (room.first_at, room.first_id)
          and b.ready_at <= now() and b.due_at <= now()
        order by b.ready_at, b.notification_id
        limit room.slots
        for update skip locked
    ) o
), claimed as (
    update outbox o
    set claim_token = nextval('claim_token'),
        claimed_by = @replica::text,
        due_at = now() + @lease::interval,
        begun_at = null
    where o.notification_id = any(array(select due.notification_id from due))
    returning o.notification_id, o.webhook_id, o.attempts, o.counted, o.generation, o.claim_token, o.ready_at
), unknown as (
    insert into attempt (notification_id, attempt, claim_token, replica, started_at, request)
    select t.notification_id, t.attempts, t.claim_token, coalesce(t.claimed_by, ''), t.begun_at, b.request
    from due t
    left join lateral (select n.request from notification_body n where n.notification_id = t.notification_id offset 0) b on true
    where t.begun_at is not null and t.claim_token is not null
    on conflict do nothing
), granted as (
    update webhook_state s
    set next_send_at = case when g.rate = 0 then s.next_send_at
            else greatest(s.next_send_at, now()) + c.rows * interval '1 s' / g.rate end,
        open_until = case when g.probe then now() + @lease::interval else s.open_until end,
        probe_id = case when g.probe then c.notification_id else s.probe_id end,
        probe_token = case when g.probe then c.claim_token else s.probe_token end
    from gated g
    join (
        select k.webhook_id, count(*) as rows, max(k.claim_token) as claim_token,
               (array_agg(k.notification_id))[1] as notification_id
        from claimed k group by k.webhook_id
    ) c using (webhook_id)
    where s.webhook_id = g.webhook_id
)
select c.notification_id, c.attempts, c.counted, c.generation, c.claim_token::bigint as claim_token, c.ready_at,
       ((c.notification_id in (
           select due.notification_id from due where due.begun_at is not null and due.claim_token is not null
       )) is true)::boolean as unknown, n.reason,
       coalesce(b.content_type, '')::text as content_type, b.content, (b.content is not null)::boolean as frozen,
       sqlc.embed(a), r.name as rule_name, c.webhook_id, room.version
from claimed c
join room using (webhook_id)
cross join lateral (
    select n.reason, n.created_at, n.notification_id,
           coalesce(n.alert_id, (
               select t.alert_id from notification t
               where t.notification_id = (select m.notification_id from digest_member m where m.digest_id = n.notification_id limit 1)
           )) as tells
    from notification n where n.notification_id = c.notification_id offset 0
) n
cross join lateral (select * from alert a where a.alert_id = n.tells offset 0) a
cross join lateral (select r.name from rule r where r.rule_id = a.rule_id offset 0) r
left join lateral (
    select b.content_type, b.content from notification_body b where c.attempts > 0 and b.notification_id = c.notification_id offset 0
) b on true
order by n.created_at, n.notification_id;

-- name: OutboxRenew :many
-- Extends the leases of claims, and returns those that stand no longer. A row that
-- is locked just now, because it is being settled, is left out of both.
with held as (
    select unnest(@notification_ids::uuid[]) as notification_id, unnest(@tokens::bigint[]) as token
), free as (
    select o.notification_id
    from outbox o
    where o.notification_id = any(@notification_ids::uuid[])
      and ((o.notification_id, o.claim_token) in (select h.notification_id, h.token from held h)) is true
    for update of o skip locked
), renewed as (
    update outbox o set due_at = now() + @lease::interval
    where o.notification_id = any(array(select free.notification_id from free))
)
select h.notification_id::uuid as notification_id, h.token::bigint as token
from held h
where ((h.notification_id, h.token) in (
    select o.notification_id, o.claim_token
    from outbox o
    where o.notification_id = any(@notification_ids::uuid[]) and o.claim_token is not null
)) is not true;

-- name: OutboxRelease :exec
-- Gives claimed rows back, due at once.
update outbox o
set due_at = now(), claim_token = null, claimed_by = null
where o.notification_id = any(@notification_ids::uuid[])
  and ((o.notification_id, o.claim_token) in (
      select held.notification_id, held.token
      from (select unnest(@notification_ids::uuid[]) as notification_id, unnest(@tokens::bigint[]) as token) held
  )) is true;

-- name: WebhookHold :exec
update webhook
set held_until = greatest(held_until, now() + @hold::interval)
where webhook_id = @webhook_id and version = @version;

-- name: WebhookDisable :one
-- No row when it is off already, or was edited since the attempt that tells so.
update webhook
set enabled = false, disabled_reason = @reason, version = version + 1, updated_at = now()
where webhook_id = @webhook_id and version = @version and enabled and deleted_at is null
returning tenant_id, name;

-- name: WebhookByID :many
select sqlc.embed(w) from webhook w where w.webhook_id = any(@webhook_ids::uuid[]);
