-- name: SettleEnded :many
-- Ends messages under their claims: each moves from the outbox to a settlement that holds the
-- attempt. Returns those whose claims are valid.
with s as (
    select unnest(@ids::uuid[]) as notification_id, unnest(@tokens::bigint[]) as token, unnest(@numbers::int[]) as number,
           unnest(@tenants::text[]) as tenant_id, unnest(@statuses::text[]) as status, unnest(@verdicts::text[]) as verdict,
           unnest(@codes::int[]) as code, unnest(@errors::text[]) as error, unnest(@responses::text[]) as response,
           unnest(@heads::json[]) as head, unnest(@durations::bigint[]) as duration_us
), gone as (
    delete from outbox o
    where o.notification_id = any(@ids::uuid[])
      and ((o.notification_id, o.claim_token) in (select s.notification_id, s.token from s)) is true
    returning o.notification_id, o.claim_token, o.begun_at
)
insert into settlement (notification_id, tenant_id, status, settled_at, attempt, claim_token, replica, started_at, verdict,
                        status_code, error, response, duration_us, response_head)
select s.notification_id, s.tenant_id, s.status, now(), s.number, s.token, @replica::text, g.begun_at, nullif(s.verdict, ''),
       nullif(s.code, 0), s.error, s.response, s.duration_us, s.head
from gone g join s on s.notification_id = g.notification_id and s.token = g.claim_token
returning notification_id, claim_token::bigint as claim_token;

-- name: SettleAgain :many
-- Makes messages due again later under their claims, and records the attempts. A body that was made
-- for an attempt that was not made has been sent to nobody and is made again: an edit that was the reason may have changed
-- what it names. Returns those whose claims are valid. After a failover that lost a claim, its outcome may be stored under the same
-- number; the outcome of the valid claim replaces it.
with s as (
    select unnest(@ids::uuid[]) as notification_id, unnest(@tokens::bigint[]) as token, unnest(@numbers::int[]) as number,
           unnest(@waits::bigint[]) as wait_us, unnest(@counts::int[]) as counts, unnest(@verdicts::text[]) as verdict,
           unnest(@codes::int[]) as code, unnest(@errors::text[]) as error, unnest(@responses::text[]) as response,
           unnest(@heads::json[]) as head, unnest(@durations::bigint[]) as duration_us, unnest(@reached::text[]) as reached
), later as (
    update outbox o
    set due_at = now() + s.wait_us * interval '1 microsecond', ready_at = now() + s.wait_us * interval '1 microsecond',
        counted = o.counted + s.counts, claim_token = null, claimed_by = null, reached = coalesce(nullif(s.reached, ''), o.reached),
        body_at = case when s.verdict <> 'NOT_MADE' or o.body_at <> o.begun_at then o.body_at end
    from s
    where o.notification_id = any(@ids::uuid[]) and o.notification_id = s.notification_id and o.claim_token = s.token
    returning s.*, o.begun_at
), unsent as (
    delete from notification_body b using later l
    where l.verdict = 'NOT_MADE' and b.notification_id = l.notification_id and b.written_at = l.begun_at
)
insert into attempt (notification_id, attempt, claim_token, replica, started_at, finished_at, verdict, status_code, error, response,
                     duration_us, response_head)
select l.notification_id, l.number, l.token, @replica::text, l.begun_at, now(), nullif(l.verdict, ''), nullif(l.code, 0), l.error,
       l.response, l.duration_us, l.head
from later l
on conflict (notification_id, attempt) do update
set claim_token = excluded.claim_token, replica = excluded.replica, started_at = excluded.started_at, finished_at = excluded.finished_at,
    verdict = excluded.verdict, status_code = excluded.status_code, error = excluded.error, response = excluded.response,
    duration_us = excluded.duration_us, response_head = excluded.response_head
returning notification_id, claim_token;

-- name: SettleLate :exec
-- Ends a message after a success, even if another replica has claimed it, because the message has
-- arrived. It does not end a message that a person has sent again since the attempt began. An
-- attempt that the present claimant has begun is recorded without an outcome.
with s as (
    select unnest(@ids::uuid[]) as notification_id, unnest(@numbers::int[]) as number
), gone as (
    delete from outbox o
    where o.notification_id = any(@ids::uuid[])
      and exists (select from s where s.notification_id = o.notification_id and s.number > o.begun_before)
    returning o.notification_id, o.attempts, o.claim_token, o.claimed_by, o.begun_at
), unknown as (
    insert into attempt (notification_id, attempt, claim_token, replica, started_at)
    select g.notification_id, g.attempts, g.claim_token, coalesce(g.claimed_by, ''), g.begun_at
    from gone g where g.begun_at is not null and g.claim_token is not null
    on conflict do nothing
)
insert into settlement (notification_id, tenant_id, status)
select n.notification_id, n.tenant_id, 'DELIVERED' from gone join notification n using (notification_id);

-- name: SettleFenced :exec
-- Stores the outcomes of attempts whose claims are not valid any more.
insert into attempt (notification_id, attempt, claim_token, replica, started_at, finished_at, verdict, status_code, error, response,
                     duration_us, response_head)
select s.notification_id, s.number, s.token, @replica::text, now() - s.duration_us * interval '1 microsecond', now(),
       nullif(s.verdict, ''), nullif(s.code, 0), s.error, s.response, s.duration_us, s.head
from (
    select unnest(@ids::uuid[]) as notification_id, unnest(@tokens::bigint[]) as token, unnest(@numbers::int[]) as number,
           unnest(@verdicts::text[]) as verdict, unnest(@codes::int[]) as code, unnest(@errors::text[]) as error,
           unnest(@responses::text[]) as response, unnest(@heads::json[]) as head, unnest(@durations::bigint[]) as duration_us
) s
on conflict (notification_id, attempt) do update
set finished_at = excluded.finished_at, verdict = excluded.verdict, status_code = excluded.status_code, error = excluded.error,
    response = excluded.response, duration_us = excluded.duration_us, response_head = excluded.response_head;

-- name: SettleNotMade :exec
-- Ends claimed messages that can never be sent or are of no use any more. The attempt is recorded
-- as not made. An empty name means that nobody discards them.
with gone as (
    delete from outbox o where o.notification_id = any(@ids::uuid[])
    returning o.notification_id, o.attempts, o.claim_token, o.begun_at
)
insert into settlement (notification_id, tenant_id, status, discarded_by, attempt, claim_token, replica, started_at, verdict, error,
                        response, duration_us)
select g.notification_id, n.tenant_id, @status::text, nullif(@discarded_by::text, ''), g.attempts, g.claim_token, @replica::text, g.begun_at,
       'NOT_MADE', e.error, '', 0
from gone g
join notification n using (notification_id)
join (select unnest(@ids::uuid[]) as notification_id, unnest(@errors::text[]) as error) e using (notification_id);

-- name: ReferenceKeep :exec
-- Stores the name by which a receiver knows an alert, in place of an earlier one. Nothing is stored
-- if the webhook was edited since, because it may have another receiver.
insert into receiver_reference (alert_id, webhook_id, reference)
select a.alert_id, w.webhook_id, @reference::text from alert a, webhook w
where a.alert_id = @alert_id::uuid and w.webhook_id = @webhook_id::uuid and w.version = @version
on conflict (alert_id, webhook_id) do update set reference = excluded.reference;

-- name: ReferenceForget :exec
-- Forgets a name that a receiver does not know any more, unless a new one was stored since.
delete from receiver_reference f
where f.alert_id = @alert_id::uuid and f.webhook_id = @webhook_id::uuid and f.reference = @reference::text;
