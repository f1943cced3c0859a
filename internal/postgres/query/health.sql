-- name: RuleFailingClaim :many
-- Claims the announcement of rules that cannot be evaluated. Returns what the announcement says,
-- with the ids of the alerts. Rules already announced are left out.
with counted as (
    insert into incident_count as c (subject, raised)
    select 'rule ' || r.id, 1
    from unnest(@rule_ids::uuid[]) as r (id)
    where not exists (select from rule_failing f where f.rule_id = r.id)
    order by r.id
    on conflict (subject) do update set raised = c.raised + 1
    returning c.subject, c.raised
), claimed as (
    insert into rule_failing (rule_id, alert_id)
    select r.id, incident_id(counted.subject, counted.raised)
    from unnest(@rule_ids::uuid[]) as r (id) join counted on counted.subject = 'rule ' || r.id
    on conflict (rule_id) do nothing
    returning rule_id, alert_id
)
select claimed.rule_id, claimed.alert_id, r.tenant_id, r.version, r.name
from claimed join rule r using (rule_id)
order by claimed.rule_id;

-- name: RuleFailingEnd :many
-- Ends the failure of rules and resolves their alerts. Returns the rules that were announced as
-- failing.
with ended as (
    delete from rule_failing where rule_id = any(@rule_ids::uuid[]) returning rule_id, alert_id
)
update alert a
set state = 'RESOLVED', resolved_at = coalesce(a.resolved_at, now()), change = nextval('alert_change')
from ended
where a.alert_id = ended.alert_id
returning a.tenant_id, a.rule_id, a.alert_id;

-- name: BackfillRecover :exec
update rule_backfill set failing = false, refused_from_ns = null, refused_to_ns = null where rule_id = @rule_id and failing;

-- name: AlertRaiseHealth :exec
-- Raises alerts about rules or, if a source is named, about the source.
insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, health, source,
                   start_time_ns, application, route, exchange)
select i.alert_id, i.tenant_id, i.rule_id, i.rule_version, 'WARNING', 'FIRING', i.title, i.message, true, nullif(@source::text, ''), 0, '', '', '{}'
from (
    select unnest(@alert_ids::uuid[]) as alert_id, unnest(@tenant_ids::text[]) as tenant_id, unnest(@rule_ids::uuid[]) as rule_id,
           unnest(@rule_versions::bigint[]) as rule_version, unnest(@titles::text[]) as title, unnest(@messages::text[]) as message
) i;

-- name: OperatorWebhooks :many
-- Returns the operator webhooks of some tenants that are not deleted. None can be deleted before
-- the transaction ends.
select tenant_id, webhook_id from webhook
where tenant_id = any(@tenant_ids::text[]) and operators and deleted_at is null
order by webhook_id
for key share;

-- name: SourceFailingClaim :many
-- Claims the announcement that the source cannot be read for each tenant of a partition that has
-- enabled rules. Returns one of these rules each, and the id of the alert to raise. Tenants already
-- announced are left out.
with affected as (
    select distinct on (r.tenant_id) r.tenant_id, r.rule_id, r.version
    from tenant_partition t join rule r using (tenant_id)
    where t.partition = @partition and r.enabled and r.deleted_at is null
      and not exists (select from alert a where a.tenant_id = r.tenant_id and a.source = @source::text and a.state <> 'RESOLVED')
    order by r.tenant_id, r.rule_id
), claimed as (
    insert into announcement (subject, replica)
    select 'source of ' || tenant_id, @replica::text from affected order by tenant_id
    on conflict do nothing
    returning subject
), counted as (
    insert into incident_count as c (subject, raised)
    select subject, 1 from claimed order by subject
    on conflict (subject) do update set raised = c.raised + 1
    returning c.subject, c.raised
)
select a.tenant_id, a.rule_id, a.version, incident_id(counted.subject, counted.raised)::uuid as alert_id
from affected a join counted on counted.subject = 'source of ' || a.tenant_id;

-- name: SourceFailingEnd :many
-- Ends the announcements about the tenants of a partition, and one that a previous version made about
-- all tenants, and resolves their alerts. People may have resolved some before.
with ended as (
    delete from announcement
    where subject = 'source' or subject in (select 'source of ' || t.tenant_id from tenant_partition t where t.partition = @partition)
    returning subject, since
)
update alert a
set state = 'RESOLVED', resolved_at = coalesce(a.resolved_at, now()), change = nextval('alert_change')
where a.source = @source::text and a.fired_at in (select since from ended)
  and (('source of ' || a.tenant_id, a.fired_at) in (select subject, since from ended) or ('source', a.fired_at) in (select subject, since from ended))
returning a.tenant_id, a.rule_id, a.alert_id;
