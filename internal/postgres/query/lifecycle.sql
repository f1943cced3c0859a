-- name: EventWebhooks :many
-- Returns the webhooks that chose an event. None can be deleted before the transaction ends.
select webhook_id from webhook
where tenant_id = any(@tenant_ids::text[]) and deleted_at is null and @event::text = any(events)
order by webhook_id
for key share;

-- name: EventTargets :many
-- Returns for which of some alerts each of these webhooks had a message that says that it is open.
-- [NotificationFollow] leaves out those that have not heard of the alert after all.
select distinct n.alert_id::uuid as alert_id, n.webhook_id
from notification n
where n.alert_id = any(@alert_ids::uuid[]) and n.webhook_id = any(@webhook_ids::uuid[]) and n.about is null
  and n.reason = any(@opening::text[]);

-- name: FollowedLock :exec
-- Locks the open messages of some alerts for some webhooks, so that none is gathered into a digest
-- or settled before the transaction ends. Messages that are already in a digest are found there by
-- [NotificationFollow].
select from (select unnest(@alert_ids::uuid[]) as alert_id, unnest(@webhook_ids::uuid[]) as webhook_id) t
join notification p on p.alert_id = t.alert_id and p.webhook_id = t.webhook_id and p.about is null
join outbox o on o.notification_id = p.notification_id
order by o.notification_id
for no key update of o;

-- name: NotificationFollow :many
-- Writes notifications about alerts that the transaction holds, behind the open ones of the
-- same alert and webhook. The generation of a reminder is its number, that of a step of an escalation its
-- minutes, that of another reason how many there were. Each is newer than the earlier ones, also after the clock was put
-- back: their order is that of their instants. No row is returned where a webhook is deleted. What a silence
-- suppresses (no silence is the nil id) is settled at once. Unless a message says that the alert fires, it depends on
-- the earlier ones: it is suppressed if all of them were, and not written if all of them were given up, because
-- a webhook that has not heard of an alert is not notified of its end. What quiet hours hold (the past is none) waits
-- outside of the queue until they are over, and its age counts from there.
with held as materialized (
    select from webhook where webhook_id = any(@held_ids::uuid[]) and deleted_at is null order by webhook_id for key share
), asked as (
    select i.alert_id, i.webhook_id, i.reason, i.event, a.tenant_id, a.rule_id, coalesce(nullif(i.silence_id, '00000000-0000-0000-0000-000000000000'), k.silence_id) as silence_id,
           case when i.quiet_until > clock_timestamp() then i.quiet_until end as quiet_until, coalesce(k.messages > 0, true) as written,
           (select max(e.created_at) from notification e where e.alert_id = i.alert_id and e.webhook_id = i.webhook_id and e.about is null) as newest_at,
           case when i.reason = 'REMINDER' then a.reminders - 1 when i.step > 0 then i.step else (
               select count(*) from notification e where e.alert_id = i.alert_id and e.webhook_id = i.webhook_id and e.reason = i.reason and e.about is null) end as generation
    from (select unnest(@alert_ids::uuid[]) as alert_id, unnest(@webhook_ids::uuid[]) as webhook_id, unnest(@reasons::text[]) as reason, unnest(@steps::integer[]) as step,
                 unnest(@events::boolean[]) as event, unnest(@silence_ids::uuid[]) as silence_id, unnest(@quiet_untils::timestamptz[]) as quiet_until) i
    join alert a using (alert_id)
    left join lateral heard(i.alert_id, i.webhook_id) k on i.reason not in ('FIRED', 'REMINDER', 'SNOOZE_ENDED', 'ESCALATED')
    where (select count(*) from held) = cardinality(@held_ids::uuid[])
), wanted as (
    select *, notification_id(alert_id, webhook_id, reason, generation) as id from asked where written
), open as materialized (
    select p.alert_id, p.webhook_id, p.created_at, p.notification_id as own, o.notification_id
    from wanted t join notification p on p.alert_id = t.alert_id and p.webhook_id = t.webhook_id and p.about is null
    left join digest_member m on m.notification_id = p.notification_id
    join outbox o on o.notification_id = coalesce(m.digest_id, p.notification_id) order by o.notification_id for no key update of o
), last as (select distinct on (alert_id, webhook_id) * from open order by alert_id, webhook_id, created_at desc, own desc
), marked as (
    update outbox o set followed = true
    where not o.followed and o.notification_id in (select l.notification_id from last l join wanted t using (alert_id, webhook_id) where t.silence_id is null)
), recorded as (
    insert into notification (notification_id, tenant_id, alert_id, rule_id, webhook_id, reason, generation, actor, created_at)
    select id, tenant_id, alert_id, rule_id, webhook_id, reason, generation, @actor::text, greatest(clock_timestamp(), newest_at + interval '1 microsecond') from wanted
), suppressed as (
    insert into settlement (notification_id, tenant_id, status, settled_at, trail, silence_id)
    select id, tenant_id, 'SUPPRESSED', coalesce(sqlc.narg(decided_at)::timestamptz, clock_timestamp()), false, silence_id from wanted where silence_id is not null
), sent as (
    insert into outbox (notification_id, webhook_id, after_id, quiet_until, ready_at, due_at, expires_at)
    select t.id, t.webhook_id, l.notification_id, t.quiet_until,
           case when l.notification_id is null and t.quiet_until is null then clock_timestamp() end, case when l.notification_id is null and t.quiet_until is null then now() end,
           coalesce(t.quiet_until, now()) + case when t.event then w.event_age_seconds * interval '1 s' when t.reason = 'REMINDER' then r.re_notify_minutes * interval '1 min' end
    from wanted t join webhook w on w.webhook_id = t.webhook_id join rule r on r.rule_id = t.rule_id left join last l on l.alert_id = t.alert_id and l.webhook_id = t.webhook_id
    where t.silence_id is null
)
select webhook_id::uuid as webhook_id, written::boolean as written, (silence_id is not null)::boolean as suppressed, (silence_id is null and quiet_until is not null)::boolean as quiet from asked;

-- name: FollowingFree :many
-- Makes messages due that wait for a message that is not in the outbox any more, or for a replay
-- that has ended. Rows that are locked at the moment are left to the next time.
with free as (
    select o.notification_id from outbox o
    where o.after_id is not null and not exists (select from outbox p where p.notification_id = o.after_id)
      and not exists (select from replay p where p.replay_id = o.after_id and p.ended_at is null)
    for no key update of o skip locked
)
update outbox o
set after_id = null, ready_at = case when o.quiet_until is null then clock_timestamp() end,
    due_at = case when o.quiet_until is null then clock_timestamp() end, since = clock_timestamp()
where o.notification_id = any(array(select free.notification_id from free))
returning o.webhook_id;
