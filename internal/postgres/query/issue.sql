-- name: IssueRules :many
-- An issue is the alerts of one signature in one application and route. The statements in this file
-- read only the tenant's part of the index alert_listed, and the rows of the issue's alerts.
select a.rule_id, r.name,
       count(*) filter (where a.state = 'FIRING') as firing,
       count(*) filter (where a.state = 'ACKNOWLEDGED') as acknowledged,
       count(*) filter (where a.state = 'RESOLVED') as resolved,
       max(case a.severity when 'CRITICAL' then 2 when 'WARNING' then 1 else 0 end)::integer as rank,
       min(a.fired_at)::timestamptz as first_at, max(a.fired_at)::timestamptz as newest_at
from alert a join rule r using (rule_id)
where a.tenant_id = @tenant_id and a.state <> 'PENDING' and a.signature = @signature and a.execution_id is not null
  and hashtext(a.application) = hashtext(@application::text) and a.application = @application
  and hashtext(a.route) = hashtext(@route::text) and a.route = @route
group by a.rule_id, r.name
order by count(*) desc, r.name;

-- name: IssueHours :many
-- Counts alerts by hours since they fired.
select floor(extract(epoch from now() - a.fired_at) / 3600)::integer as hours, count(*) as alerts
from alert a
where a.tenant_id = @tenant_id and a.state <> 'PENDING' and a.signature = @signature and a.execution_id is not null
  and hashtext(a.application) = hashtext(@application::text) and a.application = @application
  and hashtext(a.route) = hashtext(@route::text) and a.route = @route
  and a.fired_at > now() - @since::interval and a.fired_at <= now()
group by 1;

-- name: IssueRegressions :many
-- Returns the newest alerts that fired when every earlier alert had been resolved, with the time of
-- the last of those resolutions, and the number of such alerts.
with fired as (
    select a.alert_id, a.fired_at,
           max(case when a.state = 'RESOLVED' then a.resolved_at else 'infinity' end) over before as over_at
    from alert a
    where a.tenant_id = @tenant_id and a.state <> 'PENDING' and a.signature = @signature and a.execution_id is not null
      and hashtext(a.application) = hashtext(@application::text) and a.application = @application
      and hashtext(a.route) = hashtext(@route::text) and a.route = @route
    window before as (order by a.fired_at, a.alert_id rows between unbounded preceding and 1 preceding)
)
select alert_id, fired_at, over_at::timestamptz as over_at, count(*) over () as regressions
from fired
where over_at < fired_at
order by fired_at desc, alert_id desc
limit @most;

-- name: IssueLastResolution :one
select a.alert_id, a.resolved_at, a.resolved_by
from alert a
where a.tenant_id = @tenant_id and a.state = 'RESOLVED' and a.signature = @signature and a.execution_id is not null
  and hashtext(a.application) = hashtext(@application::text) and a.application = @application
  and hashtext(a.route) = hashtext(@route::text) and a.route = @route
  and a.resolved_at is not null
order by a.resolved_at desc, a.alert_id desc
limit 1;

-- name: IssuePlaces :many
-- Returns where exchanges fail in the same way, most alerts first.
select a.application, a.route, count(*) as alerts,
       count(*) filter (where a.state = 'FIRING') as firing,
       max(a.fired_at)::timestamptz as newest_at,
       count(*) over () as places
from alert a
where a.tenant_id = @tenant_id and a.state <> 'PENDING' and a.signature = @signature and a.execution_id is not null
group by a.application, a.route
order by count(*) desc, a.application, a.route
limit @most;
