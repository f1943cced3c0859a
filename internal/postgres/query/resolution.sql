-- name: ResolutionTake :one
-- Takes the rule that was taken the longest ago, if that is at least a given time ago, or as long ahead
-- because the clock was set back since. Returns no row if there is none.
with due as (
    select r.rule_id
    from rule r left join rule_resolution m using (rule_id)
    where r.resolution <> '{}' and r.deleted_at is null and (m.at is null or m.at <= now() - @every::interval or m.at > now() + @every::interval)
    order by m.at nulls first, r.rule_id
    limit 1
), taken as (
    insert into rule_resolution as m (rule_id, at) select d.rule_id, now() from due d
    on conflict (rule_id) do update set at = now() where m.at <= now() - @every::interval or m.at > now() + @every::interval
    returning m.rule_id, m.at, m.searched_to_ns, m.searched_at, m.searched_for
)
select r.rule_id, r.tenant_id, r.resolution, r.look_back_seconds, t.at, t.searched_to_ns, t.searched_at, t.searched_for
from taken t join rule r using (rule_id);

-- name: ResolutionMark :exec
update rule_resolution set searched_to_ns = @searched_to_ns::bigint, searched_at = @searched_at::timestamptz, searched_for = @searched_for::jsonb
where rule_id = @rule_id;

-- name: AlertsResolvable :many
-- Returns the open alerts of a rule, newest first, with the fields that evidence is compared by.
select i.alert_id, i.fired_at, i.execution_id::text as execution_id, greatest((i.exchange->>'endTimeNs')::bigint, i.start_time_ns)::bigint as ended_ns,
       coalesce(i.exchange->>'environment', '')::text as environment, i.application, i.route,
       coalesce(case when @attribute::text = '' then i.exchange->>'correlationId' else i.exchange->'attributes' ->> (@attribute::text) end, '')::text as value
from unnest('{FIRING,ACKNOWLEDGED}'::text[]) s (state) cross join lateral (
    select a.* from alert a
    where a.tenant_id = @tenant_id and a.state = s.state and a.rule_id = @rule_id and a.execution_id is not null
      and (a.fired_at, a.alert_id) < (@before_at::timestamptz, @before_id::uuid)
    order by a.fired_at desc, a.alert_id desc
    limit @most::int
) i
order by i.fired_at desc, i.alert_id desc
limit @most::int;

-- name: AlertResolveAged :many
-- Resolves open alerts that are older than their rule allows, oldest first. Those that are locked at the moment are
-- resolved the next time.
with aged as materialized (
    select a.alert_id
    from alert a join rule r using (rule_id)
    where a.tenant_id = @tenant_id and a.rule_id = @rule_id and a.state = any('{FIRING,ACKNOWLEDGED}'::text[]) and a.execution_id is not null
      and r.deleted_at is null and a.fired_at <= now() - (r.resolution->>'afterSeconds')::bigint * interval '1 s'
    order by a.fired_at, a.alert_id
    limit @most::int
), candidate as materialized (
    select a.alert_id from alert a join aged using (alert_id)
    where a.state in ('FIRING', 'ACKNOWLEDGED')
    order by a.alert_id
    for update of a skip locked
)
update alert a
set state = 'RESOLVED', resolved_at = now(), resolution = '{"reason": "AGE"}', change = nextval('alert_change')
from candidate c where a.alert_id = c.alert_id
returning a.alert_id;

-- name: AlertResolveProven :many
-- Resolves alerts that are still open, by the evidence for each, unless the rule was changed.
with candidate as materialized (
    select a.alert_id
    from alert a join rule r using (rule_id)
    where a.alert_id = any(@alert_ids::uuid[]) and a.rule_id = @rule_id and a.state in ('FIRING', 'ACKNOWLEDGED') and a.execution_id is not null
      and r.deleted_at is null and r.resolution = @resolution::jsonb
    order by a.alert_id
    for update of a
)
update alert a
set state = 'RESOLVED', resolved_at = now(), resolution = i.evidence, change = nextval('alert_change')
from candidate c join (select unnest(@alert_ids::uuid[]) as alert_id, unnest(@evidence::jsonb[]) as evidence) i using (alert_id)
where a.alert_id = c.alert_id
returning a.alert_id;

-- name: ResolutionReceivers :many
-- Returns the webhooks of a tenant that chose the end of alerts and whose receivers identify alerts
-- by a key. None can be deleted before the transaction ends.
select webhook_id from webhook
where tenant_id = @tenant_id and deleted_at is null and 'RESOLVED' = any(events) and preset = any(@keyed::text[])
order by webhook_id
for key share;

-- name: ResolutionTargets :many
-- Returns whom to notify that some alerts are resolved: each webhook that had a message that says
-- that one is open, if the rule wants that. [NotificationFollow] leaves out those that have not heard
-- of the alert after all. None can be deleted before the transaction ends.
select n.alert_id::uuid as alert_id, n.webhook_id
from (
    select distinct n.alert_id, n.webhook_id, n.rule_id
    from notification n
    where n.alert_id = any(@alert_ids::uuid[]) and n.about is null and n.reason = any(@opening::text[])
) n
join webhook w using (webhook_id)
join rule r on r.rule_id = n.rule_id
where w.deleted_at is null and r.notify_on_resolve
order by n.webhook_id
for key share of w;
