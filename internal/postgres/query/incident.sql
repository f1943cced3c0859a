-- name: IncidentClaim :one
-- Stores an incident of a webhook, and returns the id of its alert. Returns no row if it is already
-- stored.
with counted as (
    insert into incident_count as c (subject, raised)
    select 'webhook ' || @webhook_id::uuid || ' ' || @kind::text, 1
    where not exists (select from webhook_incident i where i.webhook_id = @webhook_id::uuid and i.kind = @kind::text)
    on conflict (subject) do update set raised = c.raised + 1
    returning c.subject, c.raised
)
insert into webhook_incident (webhook_id, kind, alert_id)
select @webhook_id::uuid, @kind::text, incident_id(counted.subject, counted.raised) from counted
on conflict do nothing
returning alert_id;

-- name: IncidentEnd :many
-- Ends incidents of webhooks, of one kind or of all, and resolves their alerts. Returns what was
-- resolved.
with ended as (
    delete from webhook_incident i
    where i.webhook_id = any(@webhook_ids::uuid[]) and (@kind::text = '' or i.kind = @kind::text)
    returning i.alert_id
)
update alert a
set state = 'RESOLVED', resolved_at = now(), change = nextval('alert_change')
from ended
where a.alert_id = ended.alert_id and a.state <> 'RESOLVED'
returning a.tenant_id, a.alert_id;

-- name: AlertRaiseWebhook :one
-- Raises an alert about a webhook. Its rule is that of a message for the webhook, or of a message
-- in a digest. Returns no row if there is none.
insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, health, webhook_id,
                   start_time_ns, application, route, exchange)
select @alert_id, n.tenant_id, r.rule_id, r.version, 'CRITICAL', 'FIRING', @title, @message, true, n.webhook_id, 0, '', '', '{}'
from notification n
join rule r on r.rule_id = coalesce(n.rule_id, (
    select t.rule_id from digest_content m join notification t using (notification_id)
    where m.digest_id = n.notification_id
    limit 1))
where n.notification_id = @notification_id::uuid
for key share of r
returning rule_id;

-- name: BreakersOpenFor :many
-- Returns the enabled webhooks whose breaker has been open for at least a time and of which
-- operators were not notified, with a message that waits for each, that come after one.
select w.webhook_id, w.tenant_id, w.name, s.last_error, s.opened_at::timestamptz as opened_at, o.notification_id
from webhook_state s
join webhook w on w.webhook_id = s.webhook_id and w.enabled
cross join lateral (
    select o.notification_id from outbox o where o.webhook_id = w.webhook_id and o.ready_at >= '-infinity' order by o.ready_at limit 1
) o
where s.opened_at <= now() - @open_for::interval
  and not exists (select from webhook_incident i where i.webhook_id = w.webhook_id and i.kind = 'FAILING')
  and w.webhook_id > @after_id::uuid
order by w.webhook_id
limit @most;

-- name: BreakerStillOpen :execrows
-- Returns one row if the breaker of an enabled webhook has still been open for at least a time, and nobody else has locked
-- it. A transaction that closes it, or edits or deletes the webhook, waits for the end of this one.
select from webhook w join webhook_state s using (webhook_id)
where w.webhook_id = @webhook_id and w.enabled and s.opened_at <= now() - @open_for::interval
for key share of w skip locked for share of s skip locked;

-- name: UndeliveredRead :many
-- Returns what messages that ended are about; for a digest, one of its alerts. Notifications of
-- operators about messages are left out, because they would lead to endless notifications.
-- generation is how often a person has sent the message again.
select n.notification_id, n.tenant_id, n.webhook_id, a.alert_id, a.rule_id,
       coalesce((select max(y.generation) from retry y where y.notification_id = n.notification_id), 0)::int as generation
from notification n
join alert a on a.alert_id = coalesce(n.alert_id, (
    select t.alert_id from digest_content m join notification t using (notification_id) where m.digest_id = n.notification_id limit 1))
where n.notification_id = any(@notification_ids::uuid[]) and n.reason <> 'UNDELIVERED'
order by n.notification_id;

-- name: UndeliveredInsert :execrows
-- Writes notifications about messages, once each, because their ids are derived.
with written as (
    insert into notification (notification_id, tenant_id, alert_id, rule_id, webhook_id, reason, about)
    select unnest(@notification_ids::uuid[]), unnest(@tenant_ids::text[]), unnest(@alert_ids::uuid[]), unnest(@rule_ids::uuid[]),
           unnest(@webhook_ids::uuid[]), 'UNDELIVERED', unnest(@abouts::uuid[])
    on conflict (notification_id) do nothing
    returning notification_id, webhook_id
)
insert into outbox (notification_id, webhook_id, ready_at) select notification_id, webhook_id, clock_timestamp() from written;
