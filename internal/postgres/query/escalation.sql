-- name: EscalationStart :exec
-- Starts the escalation of alerts that have begun to fire: their first step waits for its time.
-- Alerts whose routing has no steps are left out.
insert into alert_escalation (alert_id, tenant_id, after_minutes, due_at)
select a.alert_id, a.tenant_id, f.after_minutes, a.fired_at + f.after_minutes * interval '1 minute'
from alert a
cross join lateral (select min(v::text::integer) as after_minutes from jsonb_path_query(a.routing, '$.**.afterMinutes') v) f
where a.alert_id = any(@alert_ids::uuid[]) and a.state = 'FIRING' and f.after_minutes is not null
on conflict (alert_id) do nothing;

-- name: EscalationResume :exec
-- Makes firing alerts that the transaction has locked take the first step that was skipped since an
-- instant, unless they are to take an earlier one.
update alert_escalation e
set due_at = now(), after_minutes = f.after_minutes
from (
    select v.alert_id, min(v.void_minutes[i]) as after_minutes
    from alert_escalation v cross join lateral generate_subscripts(v.void_at, 1) i
    where v.alert_id = any(@alert_ids::uuid[]) and v.void_at[i] >= @since::timestamptz
    group by v.alert_id
) f join alert a using (alert_id)
where e.alert_id = f.alert_id and a.state = 'FIRING' and (e.due_at is null or f.after_minutes < e.after_minutes);

-- name: EscalationDue :many
-- Returns alerts whose next step is due, those that have waited longest first, that come after one.
select alert_id, due_at::timestamptz as due_at from alert_escalation
where due_at <= coalesce(sqlc.narg(now)::timestamptz, now()) and (due_at, alert_id) > (@after_due_at::timestamptz, @after_id::uuid)
order by due_at, alert_id
limit @most;

-- name: EscalationSteps :many
-- Returns which steps of alerts that the transaction has locked are still due, and which of them
-- are skipped, because the alert is snoozed or its rule is deleted. waits says that quiet hours hold
-- messages about the alert for webhooks that know nothing of it.
select e.alert_id, e.tenant_id, e.after_minutes, a.state, a.routing,
       (r.deleted_at is not null
        or exists (select from alert_snooze z where z.alert_id = e.alert_id and z.until > coalesce(sqlc.narg(now)::timestamptz, now())))::boolean as skipped,
       exists (select from quiet_unknown u where u.alert_id = e.alert_id)::boolean as waits
from alert_escalation e join alert a using (alert_id) join rule r on r.rule_id = a.rule_id
where e.alert_id = any(@alert_ids::uuid[]) and e.due_at <= coalesce(sqlc.narg(now)::timestamptz, now());

-- name: EscalationWait :exec
-- Makes the minutes of alerts that the transaction has locked count from the end of the quiet hours
-- for which they wait.
update alert_escalation e
set counts_from = q.ends_at,
    due_at = greatest(q.ends_at + e.after_minutes * interval '1 minute', coalesce(sqlc.narg(now)::timestamptz, now()) + interval '1 minute')
from (
    select u.alert_id, max(u.quiet_until) as ends_at
    from quiet_unknown u
    where u.alert_id = any(@alert_ids::uuid[])
    group by u.alert_id
) q
where e.alert_id = q.alert_id;

-- name: EscalationCount :exec
-- Makes the minutes of firing alerts that the transaction has locked count from now if a webhook is notified of
-- the alert for the first time, or if they count from a later instant, because quiet hours were edited or a
-- person has sent a message. If the step still waits for other webhooks, it does so when it is due.
-- After the clock was put back, an alert may have fired later than now.
update alert_escalation e
set counts_from = greatest(i.now, a.fired_at), due_at = greatest(i.now, a.fired_at) + e.after_minutes * interval '1 minute'
from (select unnest(@alert_ids::uuid[]) as alert_id, unnest(@firsts::boolean[]) as first, coalesce(sqlc.narg(now)::timestamptz, now()) as now) i
join alert a using (alert_id)
where e.alert_id = i.alert_id and a.state = 'FIRING' and e.due_at is not null
  and (i.first or e.counts_from > i.now and not exists (select from quiet_unknown u where u.alert_id = i.alert_id));

-- name: EscalationMove :exec
-- Moves alerts that the transaction has locked to their next steps. 0 means that there is none; the
-- row remains for an undo. If steps are overdue, each gets its own time before the next one, at
-- most five minutes. The skipped steps since the last step that was taken are kept, with the time at which the transaction
-- had the locks: the action because of which a step is skipped may have been done while it waited for them.
update alert_escalation e
set after_minutes = case when i.after_minutes = 0 then e.after_minutes else i.after_minutes end,
    due_at = case when i.after_minutes > 0 then greatest(coalesce(e.counts_from, a.fired_at) + i.after_minutes * interval '1 minute',
        coalesce(sqlc.narg(now)::timestamptz, now()) + least(i.after_minutes - e.after_minutes, 5) * interval '1 minute') end,
    void_minutes = case when i.skipped then e.void_minutes || e.after_minutes else '{}' end,
    void_at = case when i.skipped then e.void_at || coalesce(sqlc.narg(now)::timestamptz, clock_timestamp()) else '{}' end
from (select unnest(@alert_ids::uuid[]) as alert_id, unnest(@after_minutes::integer[]) as after_minutes, unnest(@skipped::boolean[]) as skipped) i
join alert a using (alert_id)
where e.alert_id = i.alert_id;

-- name: EscalationEnd :exec
delete from alert_escalation where alert_id = any(@alert_ids::uuid[]);

-- name: EscalationTeams :many
select tenant_id, teams from team_list where tenant_id = any(@tenant_ids::text[]);

-- name: EscalationWebhooks :many
-- Returns those of some webhooks that exist. None of them can be deleted before the transaction
-- ends.
select webhook_id from webhook
where webhook_id = any(@webhook_ids::uuid[]) and deleted_at is null
order by webhook_id
for key share;
