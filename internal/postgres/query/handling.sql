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
