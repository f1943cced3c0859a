-- name: AssigneeOf :one
select coalesce((select h.assignee from alert_assignment h where h.alert_id = @alert_id), '')::text as assignee;

-- name: AssignmentSet :exec
insert into alert_assignment (alert_id, tenant_id, assignee, assigned_by)
values (@alert_id, @tenant_id, @assignee, @assigned_by)
on conflict (alert_id) do update set assignee = excluded.assignee, assigned_by = excluded.assigned_by, assigned_at = now();

-- name: AssignmentEnd :exec
delete from alert_assignment where alert_id = @alert_id;

-- name: AlertTouch :exec
-- Makes open pages notice that something beside the alert has changed.
update alert set change = nextval('alert_change') where alert_id = @alert_id;

-- name: AlertMessaged :exec
-- Makes open pages notice that Tocsin released or wrote messages about locked alerts. An alert that a person has acted on
-- or assigned with others, and that an undo still finds by the change number of that action, keeps this number.
update alert a set change = nextval('alert_change')
where a.alert_id = any(@alert_ids::uuid[]) and not exists (
    select from alert_action u
    where u.tenant_id = a.tenant_id and u.change = a.change and u.undone_at is null and u.at > now() - @undo_within::interval)
  and not exists (
    select from alert_action u join alert_assignment_before b using (tenant_id, action_id)
    where u.tenant_id = a.tenant_id and u.action = 'assign' and u.undone_at is null and u.at > now() - @undo_within::interval
      and b.alert_id = a.alert_id and b.change = a.change);

-- name: AssigneeGet :one
-- Returns a user who may act on alerts.
select email from account
where tenant_id = @tenant_id and lower(email) = lower(@email::text) and not disabled and role <> 'viewer';

-- name: AssigneeList :many
select email from account
where tenant_id = @tenant_id and not disabled and role <> 'viewer'
order by email collate "C"
limit @most;

-- name: SnoozeSet :execrows
-- Snoozes an alert that the transaction has locked until an instant in the future. One that is snoozed already has been
-- so since the first time.
insert into alert_snooze (alert_id, tenant_id, until, snoozed_by)
select @alert_id::uuid, @tenant_id::text, @until::timestamptz, @snoozed_by::text
where @until::timestamptz > now() and @until::timestamptz <= now() + @longest::interval
on conflict (alert_id) do update
set until = excluded.until, snoozed_by = excluded.snoozed_by, snoozed_at = now(),
    snoozed_since = case when alert_snooze.until > now() then alert_snooze.snoozed_since else now() end;

-- name: SnoozeCancel :one
-- Cancels a snooze. Returns no row if there is none. undone says that the alert was snoozed recently.
delete from alert_snooze where alert_id = @alert_id
returning snoozed_since, (snoozed_since > now() - @undo_within::interval)::boolean as undone;

-- name: SnoozeDue :many
-- Returns alerts whose snooze is over, those that have waited longest first, that come after one.
select alert_id, until from alert_snooze
where until <= coalesce(sqlc.narg(now)::timestamptz, now()) and (until, alert_id) > (@after_until::timestamptz, @after_id::uuid)
order by until, alert_id
limit @most;

-- name: SnoozeEnd :one
-- Ends the snooze of an alert that the transaction has locked, and returns the state of the alert. Returns no row if another
-- transaction ended it first or somebody has set it again.
delete from alert_snooze z where z.alert_id = @alert_id and z.until <= coalesce(sqlc.narg(now)::timestamptz, now())
returning (select a.state from alert a where a.alert_id = z.alert_id)::text as state;

-- name: SnoozeTargets :many
-- Returns the webhooks that had a message that says that an alert is open. None can be deleted before
-- the transaction ends.
select w.webhook_id
from webhook w
where w.deleted_at is null and w.webhook_id in (
    select n.webhook_id from notification n
    where n.alert_id = @alert_id::uuid and n.about is null
      and n.reason = any(@opening::text[]))
order by w.webhook_id
for key share of w;

-- name: AlertReminded :exec
-- The next reminder of a window rule counts from now.
update alert set notified_at = now() where alert_id = @alert_id and notified_at is not null;
