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
-- Has firing alerts, which the transaction holds, take the first step whose time came after an
-- instant: now, or at its time where that is still to come. What was sent by then is not sent again,
-- and what a replay raised does not escalate.
insert into alert_escalation as e (alert_id, tenant_id, after_minutes, due_at)
select a.alert_id, a.tenant_id, f.after_minutes, greatest(a.fired_at + f.after_minutes * interval '1 minute', now())
from alert a
cross join lateral (
    select greatest(@since::timestamptz, max(n.created_at)) as at from notification n
    where n.alert_id = a.alert_id and n.reason = 'ESCALATED' and n.about is null
) last
cross join lateral (
    select min(v::text::integer) as after_minutes from jsonb_path_query(a.routing, '$.**.afterMinutes') v
    where a.fired_at + v::text::integer * interval '1 minute' > last.at
) f
where a.alert_id = any(@alert_ids::uuid[]) and a.state = 'FIRING' and f.after_minutes is not null
  and not exists (select from replay p where p.rule_id = a.rule_id and p.created_at <= a.fired_at and a.start_time_ns >= p.from_ns and a.start_time_ns < p.to_ns)
on conflict (alert_id) do update set after_minutes = excluded.after_minutes, due_at = excluded.due_at
where e.after_minutes > excluded.after_minutes;

-- name: EscalationDue :many
-- Alerts whose next step is due, the longest first, that come after one.
select alert_id, due_at from alert_escalation
where due_at <= coalesce(sqlc.narg(now)::timestamptz, now()) and (due_at, alert_id) > (@after_due_at::timestamptz, @after_id::uuid)
order by due_at, alert_id
limit @most;

-- name: EscalationSteps :many
-- Which steps of alerts, which the transaction holds, are due still, and which of them are void:
-- while the alert is snoozed, and where its rule is deleted.
select e.alert_id, e.tenant_id, e.after_minutes, a.state, a.routing,
       (r.deleted_at is not null
        or exists (select from alert_snooze z where z.alert_id = e.alert_id and z.until > coalesce(sqlc.narg(now)::timestamptz, now())))::boolean as void
from alert_escalation e join alert a using (alert_id) join rule r on r.rule_id = a.rule_id
where e.alert_id = any(@alert_ids::uuid[]) and e.due_at <= coalesce(sqlc.narg(now)::timestamptz, now());

-- name: EscalationMove :exec
-- Moves alerts, which the transaction holds, on to their next steps. Where steps are overdue, each
-- has its time before the next one, five minutes at the most.
update alert_escalation e
set after_minutes = i.after_minutes, due_at = greatest(a.fired_at + i.after_minutes * interval '1 minute',
        coalesce(sqlc.narg(now)::timestamptz, now()) + least(i.after_minutes - e.after_minutes, 5) * interval '1 minute')
from (select unnest(@alert_ids::uuid[]) as alert_id, unnest(@after_minutes::integer[]) as after_minutes) i
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
