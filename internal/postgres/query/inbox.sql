-- name: AlertGet :one
select sqlc.embed(a), r.name as rule_name, r.about as rule_about, h.assignee, h.assigned_by, h.assigned_at,
       z.until as snoozed_until, z.snoozed_by, z.snoozed_at
from alert a join rule r using (rule_id) left join alert_assignment h using (alert_id)
left join alert_snooze z on z.alert_id = a.alert_id and z.until > now()
where a.tenant_id = @tenant_id and a.alert_id = @alert_id;

-- name: AlertLock :one
select state from alert where tenant_id = @tenant_id and alert_id = @alert_id for update;

-- name: AlertAcknowledge :exec
update alert
set state = 'ACKNOWLEDGED', acknowledged_at = now(), acknowledged_by = @actor, change = nextval('alert_change')
where alert_id = @alert_id;

-- name: AlertResolve :exec
update alert
set state = 'RESOLVED', resolved_at = now(), resolved_by = @actor, held = group_key is not null, change = nextval('alert_change')
where alert_id = @alert_id;

-- name: AlertCounts :one
select count(*) filter (where state = 'PENDING') as pending,
       count(*) filter (where state = 'FIRING') as firing,
       count(*) filter (where state = 'ACKNOWLEDGED') as acknowledged,
       count(*) filter (where state = 'RESOLVED') as resolved
from alert where tenant_id = @tenant_id;

-- name: AlertExists :one
select exists (select from alert where tenant_id = @tenant_id and alert_id = @alert_id);

-- name: NotificationGet :one
select sqlc.embed(s), o.attempts as open_attempts, w.name as webhook_name,
       coalesce((select a.title from alert a where a.alert_id = s.alert_id), '')::text as alert_title
from notification_status s
join webhook w using (webhook_id)
left join outbox o using (notification_id)
where s.tenant_id = @tenant_id and s.notification_id = @notification_id;

-- name: NotificationsOfAlert :many
select sqlc.embed(s), o.attempts as open_attempts, w.name as webhook_name,
       coalesce((select a.title from alert a where a.alert_id = s.alert_id), '')::text as alert_title
from notification_status s
join webhook w using (webhook_id)
left join outbox o using (notification_id)
where s.tenant_id = @tenant_id and s.alert_id = @alert_id::uuid
order by s.created_at, s.notification_id;

-- name: AttemptsOf :many
-- An attempt without an outcome is under way while its claim is valid.
select sqlc.embed(t), coalesce(o.claim_token = t.claim_token and o.due_at > now(), false)::boolean as claimed
from attempt_history t left join outbox o using (notification_id)
where t.notification_id = any(@notification_ids::uuid[])
order by t.started_at, t.notification_id, t.attempt;

-- name: AttemptVerdicts :many
-- Like AttemptsOf, without the request and the answer.
select t.notification_id, t.attempt, t.verdict, t.finished_at, t.status_code, t.duration_us, t.error,
       coalesce(o.claim_token = t.claim_token and o.due_at > now(), false)::boolean as claimed
from attempt_history t left join outbox o using (notification_id)
where t.notification_id = any(@notification_ids::uuid[])
order by t.started_at, t.notification_id, t.attempt;

-- name: BodiesOf :many
select distinct on (b.notification_id) b.notification_id, b.content_type, b.content, b.written_at, w.webhook_id, w.version, w.updated_at, n.reason,
       coalesce((select f.reference from receiver_reference f where f.alert_id = n.alert_id and f.webhook_id = n.webhook_id), '')::text as reference
from notification_body b
join notification n using (notification_id)
join webhook w on w.webhook_id = n.webhook_id
where b.notification_id = any(@notification_ids::uuid[])
order by b.notification_id, b.written_at desc;

-- name: RetriesOfAll :many
select notification_id, retried_at from retry where notification_id = any(@notification_ids::uuid[]) order by generation;

-- name: AlertActivity :many
-- Counts alerts by rule and minute, in the hour that ends with the present minute. Returns one row
-- without a rule if there are none. Of very many alerts, only the newest count.
with hour as (
    select date_trunc('minute', now()) - interval '59 minutes' as since
), recent as (
    select a.rule_id, date_trunc('minute', a.fired_at) as minute
    from alert a
    where a.tenant_id = @tenant_id and a.fired_at >= (select since from hour) and a.state <> 'PENDING' and not a.health
    order by a.fired_at desc
    limit @most
)
select hour.since::timestamptz as since, recent.rule_id, coalesce(extract(epoch from recent.minute - hour.since) / 60, 0)::integer as minute,
       count(recent.rule_id) as alerts
from hour left join recent on true
group by hour.since, recent.rule_id, recent.minute;

-- name: AlertDay :many
-- Counts alerts of a rule by steps of 15 minutes, in the 24 hours that end with the present step.
-- Returns one row without alerts if there are none. Of very many alerts, only the newest count.
with day as (
    select date_bin('15 minutes', now(), 'epoch') - interval '23 hours 45 minutes' as since
), recent as (
    select extract(epoch from a.fired_at - (select since from day)) / 900 as step
    from alert a
    where a.tenant_id = @tenant_id and a.rule_id = @rule_id and a.state = any('{FIRING,ACKNOWLEDGED,RESOLVED}'::text[])
      and a.fired_at >= (select since from day) and not a.health
    order by a.fired_at desc
    limit @most
)
select day.since::timestamptz as since, coalesce(floor(recent.step), 0)::integer as step, count(recent.step) as alerts
from day left join recent on true
group by day.since, floor(recent.step);

-- name: StatusRules :one
select count(*) as rules,
       count(*) filter (where r.enabled) as enabled,
       count(*) filter (where r.enabled and p.problem is not null) as failing,
       clock_timestamp()::timestamptz as now
from rule r join rule_progress p using (rule_id)
where r.tenant_id = @tenant_id and r.deleted_at is null;

-- name: StatusProgress :many
-- Returns the progress of the enabled rules. Rules without a backfill of their own have the
-- progress of their partition, so they are one row for each look-back. Window rules look at nothing
-- behind the cursor of their partition.
select (array_agg(r.rule_id order by r.rule_id))[1]::uuid as rule_id, (array_agg(r.name order by r.rule_id))[1]::text as name, r.look_back_seconds,
       p.cursor, p.backfill_from_ns, p.backfill_cursor_ns, p.position, p.until, p.failing,
       (case when p.position is null then 0 else p.armed_since_ns end)::bigint as armed_ns,
       r.fire_mode = 'PER_EXCHANGE' as of_exchange, count(*) as alike, (extract(epoch from now()) * 1e9)::bigint as now_ns
from rule r join rule_progress p using (rule_id)
where r.tenant_id = @tenant_id and r.deleted_at is null and r.enabled
  and (p.cursor is not null or p.position is not null)
group by r.look_back_seconds, p.cursor, p.backfill_from_ns, p.backfill_cursor_ns, p.position, p.until, p.failing, armed_ns, of_exchange;
