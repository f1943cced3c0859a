-- name: OutboxLook :many
-- Returns the enabled webhooks that have messages, with their limits, whether a message may be sent
-- now and, in microseconds rounded up, the time until the next one may be sent; 0 if there is none.
-- No message may be sent while the receiver has asked for a pause, the breaker is open, or a probe
-- is on its way. A whole look finds the webhooks in the queue, going from one to the next. Any
-- other look reads only the named webhooks, each from its bound.
with recursive found as (
    (select o.webhook_id from outbox o where @whole::boolean and o.ready_at >= '-infinity' order by o.webhook_id limit 1)
    union all
    select (select o.webhook_id from outbox o where o.webhook_id > f.webhook_id and o.ready_at >= '-infinity' order by o.webhook_id limit 1)
    from found f where f.webhook_id is not null
), candidate as (
    select f.webhook_id, timestamptz '-infinity' as bound from found f where f.webhook_id is not null
    union all
    select unnest(@webhook_ids::uuid[]), unnest(@bounds::timestamptz[]) where not @whole::boolean
)
select w.webhook_id, w.version, w.updated_at, w.max_concurrent, w.rate_per_second, w.digest_above,
       rate_tokens(w.rate_per_second, s.next_send_at, now())::double precision as tokens,
       (s.opened_at is not null or s.holds > 0)::boolean as probe,
       (coalesce(ripe.due_at <= now(), false) and not held.now)::boolean as due,
       coalesce(greatest(ceil(extract(epoch from
           case when held.now then greatest(held.until, least(ripe.due_at, later.at)) when ripe.due_at <= now() then later.at
                else least(ripe.due_at, later.at) end - now()
       ) * 1000000), 0), 0)::bigint as next_us,
       (first.at is not null)::boolean as has_rows, coalesce(first.at, now())::timestamptz as first_at, now()::timestamptz as at
from candidate c
cross join lateral (select * from webhook w where w.webhook_id = c.webhook_id and w.enabled offset 0) w
cross join lateral (select * from webhook_state s where s.webhook_id = c.webhook_id offset 0) s
cross join lateral (
    select greatest(w.held_until, s.open_until, p.due_at) as until, coalesce(greatest(w.held_until, s.open_until, p.due_at) > now(), false) as now
    from (select (select b.due_at from outbox b where b.notification_id = s.probe_id and b.claim_token = s.probe_token) as due_at) p offset 0
) held
cross join lateral (select min(o.ready_at) as at from outbox o where o.webhook_id = w.webhook_id and o.ready_at >= c.bound) first
cross join lateral (
    select coalesce((select o.due_at from outbox o
                     where o.webhook_id = w.webhook_id and o.ready_at >= first.at and o.ready_at <= now() and o.due_at <= now()
                     order by o.ready_at limit 1),
                    (select min(o.due_at) from outbox o where o.webhook_id = w.webhook_id and o.ready_at >= first.at and o.ready_at <= now())) as due_at offset 0
) ripe
cross join lateral (select min(o.ready_at) as at from outbox o where o.webhook_id = w.webhook_id and o.ready_at > now()) later;

-- name: ClaimGrant :many
-- Returns how many messages may be claimed for webhooks with a rate, or to which a probe goes
-- first. It locks their state and reads it under the lock. States that another transaction has
-- locked are skipped.
select s.webhook_id, (s.opened_at is not null or s.holds > 0)::boolean as probe,
       case when w.rate_per_second = 0 then 1000
            else greatest(0, floor(rate_tokens(w.rate_per_second, s.next_send_at, now()))) end::int as slots
from webhook_state s
join webhook w using (webhook_id)
where s.webhook_id = any(@webhook_ids::uuid[])
  and (w.rate_per_second > 0 or s.opened_at is not null or s.holds > 0)
  and coalesce(s.open_until <= now(), true)
  and not exists (select from outbox p where p.notification_id = s.probe_id and p.claim_token = s.probe_token and p.due_at > now())
for update of s skip locked;

-- name: OutboxClaim :many
-- Takes due rows, oldest first, and begins their attempts. For each webhook whose version is the
-- one looked at, it takes at most the wanted number. Each row gets its own token and is leased
-- until the lease ends. If an earlier claimant began an attempt and stored no outcome, the attempt
-- is recorded as it is. granted are the webhooks that [ClaimGrant] has admitted.
with room as (
    select r.webhook_id, r.slots, r.first_at, w.version
    from (select unnest(@webhook_ids::uuid[]) as webhook_id, unnest(@versions::bigint[]) as version, unnest(@slots::int[]) as slots,
                 unnest(@first_at::timestamptz[]) as first_at) r
    join webhook w on w.webhook_id = r.webhook_id and w.version = r.version and w.enabled and coalesce(w.held_until <= now(), true)
    join webhook_state s on s.webhook_id = r.webhook_id
    where r.webhook_id = any(@granted::uuid[]) or (w.rate_per_second = 0 and s.opened_at is null and s.holds = 0)
), due as (
    select o.*
    from room cross join lateral (
        select b.notification_id, b.attempts, b.claim_token, b.claimed_by, b.begun_at from outbox b
        where b.webhook_id = room.webhook_id and b.ready_at >= room.first_at and b.ready_at <= now() and b.due_at <= now()
        order by b.ready_at, b.notification_id limit room.slots for update skip locked
    ) o
), unknown as (
    insert into attempt (notification_id, attempt, claim_token, replica, started_at)
    select t.notification_id, t.attempts, t.claim_token, coalesce(t.claimed_by, ''), t.begun_at
    from due t where t.begun_at is not null and t.claim_token is not null
    on conflict do nothing
)
update outbox o
set claim_token = random_token(), claimed_by = @replica::text, due_at = now() + @lease::interval,
    attempts = o.attempts + 1, begun_at = now(), body_at = coalesce(o.body_at, now())
where o.notification_id = any(array(select due.notification_id from due))
returning o.notification_id, o.webhook_id, o.attempts, (o.attempts - o.begun_before)::int as tries, o.counted, o.generation, o.claim_token::bigint as claim_token, o.begun_at::timestamptz as begun_at, o.body_at::timestamptz as body_at, o.reached,
          extract(epoch from now() - o.since)::double precision as waited, coalesce(o.expires_at <= now(), false)::boolean as expired,
          coalesce(o.notification_id in (select t.notification_id from due t where t.begun_at is not null and t.claim_token is not null), false)::boolean as unknown;

-- name: ClaimGranted :exec
-- Stores what was claimed under grants: the use of the rate, and the probes on their way.
update webhook_state s
set next_send_at = case when w.rate_per_second = 0 then s.next_send_at
        else greatest(s.next_send_at, now()) + c.rows * interval '1 s' / w.rate_per_second end,
    open_until = case when s.opened_at is not null then now() + @lease::interval else s.open_until end,
    probe_id = case when s.opened_at is not null or s.holds > 0 then c.notification_id else s.probe_id end,
    probe_token = case when s.opened_at is not null or s.holds > 0 then c.token else s.probe_token end
from (select unnest(@webhook_ids::uuid[]) as webhook_id, unnest(@rows::int[]) as rows,
             unnest(@notification_ids::uuid[]) as notification_id, unnest(@tokens::bigint[]) as token) c
join webhook w using (webhook_id)
where s.webhook_id = c.webhook_id;

-- name: ClaimRead :many
-- Returns what claimed messages are about. A digest comes with the alert of one of its members. The
-- rows are looked up one by one, whatever the planner believes about the sizes of the tables.
select n.notification_id, n.reason, n.actor, n.created_at, n.commit_span,
       case when n.reason in ('ESCALATED', 'ACKNOWLEDGED', 'RESOLVED', 'REOPENED') then needless(n.notification_id, @undo_within) else false end::boolean as needless, sqlc.embed(a), r.name as rule_name, r.about as rule_about,
       coalesce((select f.reference from receiver_reference f where f.alert_id = n.alert and f.webhook_id = n.webhook_id), '')::text as reference,
       coalesce((select t.ts from slack_thread t join webhook w on w.webhook_id = t.webhook_id
                 where t.webhook_id = n.webhook_id and t.issue = md5(concat_ws(E'\x1f', a.application, a.route, a.signature))::uuid
                   and w.slack_threads and t.channel = w.slack_channel and t.begun_at > now() - interval '1 day'), '')::text as thread
from unnest(@notification_ids::uuid[]) as c (id)
cross join lateral (
    select n.reason, n.notification_id, n.webhook_id, n.actor, n.created_at, n.commit_span,
           coalesce(n.alert_id, (
               select t.alert_id from notification t
               where t.notification_id = (select m.notification_id from digest_content m where m.digest_id = n.notification_id limit 1)
           )) as alert
    from notification n where n.notification_id = c.id offset 0
) n
cross join lateral (select * from alert a where a.alert_id = n.alert offset 0) a
cross join lateral (select r.name, r.about from rule r where r.rule_id = a.rule_id offset 0) r;

-- name: BodyRead :many
-- Returns the bodies of messages that were rendered before, unless a person has entered something else for the receiver
-- since: they name the former one. An edit that is not visible yet has the attempt not made.
select b.notification_id, b.content_type, b.content
from (select unnest(@notification_ids::uuid[]) as id, unnest(@webhook_ids::uuid[]) as webhook_id, unnest(@written_at::timestamptz[]) as at) c
cross join lateral (
    select * from notification_body b where b.notification_id = c.id and b.written_at = c.at offset 0
) b
where b.webhook_version >= (select w.inputs_version from webhook w where w.webhook_id = c.webhook_id);

-- name: BodyForget :exec
-- Deletes bodies that are rendered again for the attempts that begin.
with again as (
    update outbox o set body_at = o.begun_at where o.notification_id = any(@notification_ids::uuid[])
)
delete from notification_body b
using (select unnest(@notification_ids::uuid[]) as id, unnest(@written_at::timestamptz[]) as at) c
where b.notification_id = c.id and b.written_at = c.at;

-- name: UndeliveredAbout :many
-- Returns the undelivered messages that notifications of operators are about. A message that is
-- being sent again has no status.
select n.notification_id, w.name as webhook, coalesce(s.status, '')::text as status, coalesce(s.error, '')::text as error
from unnest(@notification_ids::uuid[]) as c (id)
cross join lateral (select * from notification n where n.notification_id = c.id offset 0) n
join notification t on t.notification_id = n.about
join webhook w on w.webhook_id = t.webhook_id
left join settlement s on s.notification_id = t.notification_id;

-- name: WebhooksUnwanted :many
-- Returns the webhooks that do not want what was claimed for them under some tokens: those that
-- were edited since, are disabled or held, and those whose breaker is open and none of whose
-- tokens is that of the probe.
select c.webhook_id::uuid
from (select unnest(@webhook_ids::uuid[]) as webhook_id, unnest(@versions::bigint[]) as version) c
where not exists (
    select from webhook w join webhook_state b using (webhook_id)
    where w.webhook_id = c.webhook_id and w.version = c.version and w.enabled and coalesce(w.held_until <= now(), true)
      and (b.opened_at is null and b.holds = 0 or b.probe_token = any(@tokens::bigint[])));

-- name: BodyInsert :exec
insert into notification_body (notification_id, content_type, content, problem, written_at, webhook_version)
select unnest(@notification_ids::uuid[]), unnest(@content_types::text[]), unnest(@contents::bytea[]), unnest(@problems::text[]), unnest(@written_at::timestamptz[]),
       unnest(@webhook_versions::bigint[]);

-- name: OutboxRenew :many
-- Extends leases that end before a new one would. Returns how long each valid claim now lasts. A
-- row that is locked at the moment, because it is being settled or claimed by another replica, is
-- left as it is.
with held as (
    select unnest(@notification_ids::uuid[]) as notification_id, unnest(@tokens::bigint[]) as token
), free as (
    select o.notification_id from outbox o
    where o.notification_id = any(@notification_ids::uuid[]) and o.due_at < now() + @fresh::interval
      and ((o.notification_id, o.claim_token) in (select h.notification_id, h.token from held h)) is true
    for update of o skip locked
), renewed as (
    update outbox o set due_at = now() + @lease::interval
    where o.notification_id = any(array(select free.notification_id from free))
    returning o.notification_id, o.due_at
)
select o.claim_token::bigint as token, (extract(epoch from coalesce(r.due_at, o.due_at) - now()) * 1000000)::bigint as left_us
from outbox o left join renewed r using (notification_id)
where o.notification_id = any(@notification_ids::uuid[])
  and ((o.notification_id, o.claim_token) in (select h.notification_id, h.token from held h)) is true;

-- name: WebhookDisable :one
-- Returns no row if the webhook is already disabled, or was edited since the attempt.
update webhook
set enabled = false, disabled_reason = @reason, version = version + 1, updated_at = now()
where webhook_id = @webhook_id and version = @version and enabled and deleted_at is null
returning tenant_id, name;

-- name: WebhookByID :many
select sqlc.embed(w) from webhook w where w.webhook_id = any(@webhook_ids::uuid[]);
