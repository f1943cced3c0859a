-- name: EscalationStart :exec
-- Has the first step of alerts that have begun to fire wait for its time, where how they were
-- routed has steps.
insert into alert_escalation (alert_id, tenant_id, after_minutes, due_at)
select a.alert_id, a.tenant_id, f.after_minutes, a.fired_at + f.after_minutes * interval '1 minute'
from alert a
cross join lateral (select min(v::text::integer) as after_minutes from jsonb_path_query(a.routing, '$.**.afterMinutes') v) f
where a.alert_id = any(@alert_ids::uuid[]) and a.state = 'FIRING' and f.after_minutes is not null
on conflict (alert_id) do nothing;

-- name: EscalationResume :exec
-- Has firing alerts, which the transaction holds, take the first step that was void since an instant.
update alert_escalation e
set due_at = now(), after_minutes = (select min(e.void_minutes[i]) from generate_subscripts(e.void_at, 1) i where e.void_at[i] >= @since::timestamptz)
from alert a
where e.alert_id = any(@alert_ids::uuid[]) and a.alert_id = e.alert_id and a.state = 'FIRING' and @since::timestamptz <= any(e.void_at);

-- name: EscalationDue :many
-- Alerts whose next step is due, the longest first, that come after one.
select alert_id, due_at::timestamptz as due_at from alert_escalation
where due_at <= coalesce(sqlc.narg(now)::timestamptz, now()) and (due_at, alert_id) > (@after_due_at::timestamptz, @after_id::uuid)
order by due_at, alert_id
limit @most;

-- name: EscalationSteps :many
-- Which steps of alerts, which the transaction holds, are due still, and which of them are void:
-- while the alert is snoozed, and where its rule is deleted. Waits tells that quiet hours hold messages
-- about the alert.
select e.alert_id, e.tenant_id, e.after_minutes, a.state, a.routing,
       (r.deleted_at is not null
        or exists (select from alert_snooze z where z.alert_id = e.alert_id and z.until > coalesce(sqlc.narg(now)::timestamptz, now())))::boolean as void,
       exists (select from notification n join outbox o using (notification_id) where n.alert_id = e.alert_id and o.quiet_until is not null)::boolean as waits
from alert_escalation e join alert a using (alert_id) join rule r on r.rule_id = a.rule_id
where e.alert_id = any(@alert_ids::uuid[]) and e.due_at <= coalesce(sqlc.narg(now)::timestamptz, now());

-- name: EscalationWait :exec
-- Has the minutes of alerts, which the transaction holds, count from the end of the quiet hours that hold
-- messages about them.
update alert_escalation e
set counts_from = q.ends_at,
    due_at = greatest(q.ends_at + e.after_minutes * interval '1 minute', coalesce(sqlc.narg(now)::timestamptz, now()) + interval '1 minute')
from (
    select n.alert_id, max(o.quiet_until) as ends_at
    from notification n join outbox o using (notification_id)
    where n.alert_id = any(@alert_ids::uuid[]) and o.quiet_until is not null
    group by n.alert_id
) q
where e.alert_id = q.alert_id;

-- name: EscalationCount :exec
-- Has the minutes of firing alerts, which the transaction holds, count from now where a webhook is told of them
-- only now, and where they count from later, because quiet hours were edited. While others hold messages about
-- an alert, its step waits for these.
update alert_escalation e
set counts_from = i.now, due_at = i.now + e.after_minutes * interval '1 minute'
from (select unnest(@alert_ids::uuid[]) as alert_id, unnest(@firsts::boolean[]) as first, coalesce(sqlc.narg(now)::timestamptz, now()) as now) i
join alert a using (alert_id)
where e.alert_id = i.alert_id and a.state = 'FIRING' and e.due_at is not null and (i.first or e.counts_from > i.now)
  and not exists (select from notification n join outbox o using (notification_id) where n.alert_id = i.alert_id and o.quiet_until is not null);

-- name: EscalationMove :exec
-- Moves alerts, which the transaction holds, on to their next steps; 0 is none, and the row stays for
-- an undo. Where steps are overdue, each has its time before the next one, five minutes at the most. Of
-- void steps those since one was taken are kept.
update alert_escalation e
set after_minutes = case when i.after_minutes = 0 then e.after_minutes else i.after_minutes end,
    due_at = case when i.after_minutes > 0 then greatest(coalesce(e.counts_from, a.fired_at) + i.after_minutes * interval '1 minute',
        coalesce(sqlc.narg(now)::timestamptz, now()) + least(i.after_minutes - e.after_minutes, 5) * interval '1 minute') end,
    void_minutes = case when i.void then e.void_minutes || e.after_minutes else '{}' end,
    void_at = case when i.void then e.void_at || coalesce(sqlc.narg(now)::timestamptz, now()) else '{}' end
from (select unnest(@alert_ids::uuid[]) as alert_id, unnest(@after_minutes::integer[]) as after_minutes, unnest(@voids::boolean[]) as void) i
join alert a using (alert_id)
where e.alert_id = i.alert_id;

-- name: EscalationEnd :exec
delete from alert_escalation where alert_id = any(@alert_ids::uuid[]);

-- name: EscalationTeams :many
select tenant_id, teams from team_list where tenant_id = any(@tenant_ids::text[]);

-- name: EscalationWebhooks :many
-- Those of some webhooks that are there. None can be deleted before the transaction ends.
select webhook_id from webhook
where webhook_id = any(@webhook_ids::uuid[]) and deleted_at is null
order by webhook_id
for key share;

-- name: AlertTouchMany :exec
update alert set change = nextval('alert_change') where alert_id = any(@alert_ids::uuid[]);
