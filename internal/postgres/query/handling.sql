-- name: AssigneeOf :one
select coalesce((select h.assignee from alert_assignment h where h.alert_id = @alert_id), '')::text as assignee;

-- name: AssignmentSet :exec
insert into alert_assignment (alert_id, tenant_id, assignee, assigned_by)
values (@alert_id, @tenant_id, @assignee, @assigned_by)
on conflict (alert_id) do update set assignee = excluded.assignee, assigned_by = excluded.assigned_by, assigned_at = now();

-- name: AssignmentEnd :exec
delete from alert_assignment where alert_id = @alert_id;

-- name: AlertTouch :exec
-- Lets open pages know that something beside the alert has changed.
update alert set change = nextval('alert_change') where alert_id = @alert_id;

-- name: AssigneeGet :one
-- A user who may act on alerts.
select email from account
where tenant_id = @tenant_id and lower(email) = lower(@email::text) and not disabled and role <> 'viewer';

-- name: AssigneeList :many
select email from account
where tenant_id = @tenant_id and not disabled and role <> 'viewer'
order by email collate "C"
limit @most;

-- name: SnoozeSet :execrows
-- Snoozes an alert, which the transaction holds, until an instant that is still to come.
insert into alert_snooze (alert_id, tenant_id, until, snoozed_by)
select @alert_id::uuid, @tenant_id::text, @until::timestamptz, @snoozed_by::text
where @until::timestamptz > now() and @until::timestamptz <= now() + @longest::interval
on conflict (alert_id) do update set until = excluded.until, snoozed_by = excluded.snoozed_by, snoozed_at = now();

-- name: SnoozeCancel :one
-- Cancels a snooze; no row where there is none. Undone is one that was set lately.
delete from alert_snooze where alert_id = @alert_id
returning snoozed_at, (snoozed_at > now() - @undo_within::interval)::boolean as undone;

-- name: SnoozeDue :many
-- Alerts whose snooze is over, the longest first, that come after one.
select alert_id, tenant_id, until from alert_snooze
where until <= coalesce(sqlc.narg(now)::timestamptz, now()) and (until, alert_id) > (@after_until::timestamptz, @after_id::uuid)
order by until, alert_id
limit @most;

-- name: SnoozeEnd :execrows
-- Ends the snooze of an alert, which the transaction holds, unless somebody was first or has
-- snoozed it anew.
delete from alert_snooze where alert_id = @alert_id and until <= coalesce(sqlc.narg(now)::timestamptz, now());

-- name: SnoozeTargets :many
-- The webhooks that were notified of an alert when it was raised or escalated. None can be deleted before
-- the transaction ends.
select w.webhook_id
from webhook w
where w.deleted_at is null and w.webhook_id in (
    select n.webhook_id from notification n
    where n.alert_id = @alert_id::uuid and n.about is null
      and n.reason = any('{FIRED,ESCALATED,RULE_FAILING,SOURCE_FAILING,WEBHOOK_OFF,WEBHOOK_FAILING}'::text[]))
order by w.webhook_id
for key share of w;

-- name: AlertReminded :exec
-- The next reminder of a window rule counts from here on.
update alert set notified_at = case when notified_at is not null then now() end, change = nextval('alert_change') where alert_id = @alert_id;
