-- name: AlertOpen :many
-- Returns the open and the held alerts of window rules. Its condition is that of the index
-- alert_open_once.
select alert_id, rule_id, group_key::text as group_key, state, fired_at, notified_at, resolved_at, reminders, held, held_until, routing,
       start_time_ns, coalesce((exchange->>'endTimeNs')::bigint, start_time_ns)::bigint as ended_ns,
       coalesce((count->>'durationMs')::bigint, 0)::bigint as duration_ms,
       exists (select from alert_snooze z where z.alert_id = alert.alert_id)::boolean as snoozed
from alert
where rule_id = any(@rule_ids::uuid[]) and group_key is not null and (state <> 'RESOLVED' or held);

-- name: AlertLockFree :many
-- Locks those of some alerts that nobody else has locked, in the order of their ids, as every change of several alerts does.
-- Returns them.
select alert_id from alert where alert_id = any(@alert_ids::uuid[]) order by alert_id for update skip locked;

-- name: AlertsThere :many
-- Returns those of some alerts that exist.
select alert_id from alert where alert_id = any(@alert_ids::uuid[]) order by alert_id;

-- name: AlertRaise :many
-- Opens alerts, except for groups that have an open or a held alert.
insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, group_key, count,
                   start_time_ns, application, route, exchange, signature, notified_at, routing)
select i.alert_id, i.tenant_id, i.rule_id, i.rule_version, i.severity, i.state, i.title, i.message, i.group_key, i.count,
       i.start_time_ns, i.application, i.route, i.exchange, left(coalesce(i.exchange->>'errorType', ''), 200),
       case when i.state = 'FIRING' then now() end, i.routing
from (
    select unnest(@alert_ids::uuid[]) as alert_id, unnest(@tenant_ids::text[]) as tenant_id, unnest(@rule_ids::uuid[]) as rule_id,
           unnest(@rule_versions::bigint[]) as rule_version, unnest(@severities::text[]) as severity, unnest(@states::text[]) as state,
           unnest(@titles::text[]) as title, unnest(@messages::text[]) as message, unnest(@group_keys::text[]) as group_key,
           unnest(@counts::jsonb[]) as count, unnest(@start_times_ns::bigint[]) as start_time_ns,
           unnest(@applications::text[]) as application, unnest(@routes::text[]) as route, unnest(@exchanges::json[]) as exchange,
           unnest(@routings::jsonb[]) as routing
) i
on conflict do nothing
returning alert_id;

-- name: AlertFire :many
-- Makes pending alerts fire, and reminds of firing alerts that are not snoozed. An alert that was
-- routed keeps its routing.
update alert a
set state = 'FIRING', fired_at = case when i.remind then a.fired_at else now() end, notified_at = now(),
    reminders = a.reminders + i.remind::int, title = i.title, message = i.message, count = i.count,
    start_time_ns = i.start_time_ns, application = i.application, route = i.route, exchange = i.exchange,
    signature = left(coalesce(i.exchange->>'errorType', ''), 200), routing = coalesce(a.routing, i.routing), change = nextval('alert_change')
from (
    select unnest(@alert_ids::uuid[]) as alert_id, unnest(@reminds::boolean[]) as remind,
           unnest(@titles::text[]) as title, unnest(@messages::text[]) as message, unnest(@counts::jsonb[]) as count,
           unnest(@start_times_ns::bigint[]) as start_time_ns, unnest(@applications::text[]) as application,
           unnest(@routes::text[]) as route, unnest(@exchanges::json[]) as exchange, unnest(@routings::jsonb[]) as routing
) i
where a.alert_id = i.alert_id and a.state = case when i.remind then 'FIRING' else 'PENDING' end
  and not (i.remind and exists (select from alert_snooze z where z.alert_id = a.alert_id))
returning a.alert_id;

-- name: AlertClear :many
-- Resolves alerts. Their texts stay as they were when the alerts fired, and the count of that time
-- is kept beside the present one.
update alert a
set state = 'RESOLVED', resolved_at = now(), count = i.count || jsonb_build_object('fired', a.count), change = nextval('alert_change')
from (select unnest(@alert_ids::uuid[]) as alert_id, unnest(@counts::jsonb[]) as count) i
where a.alert_id = i.alert_id and a.state in ('FIRING', 'ACKNOWLEDGED')
returning a.alert_id;

-- name: AlertRelease :many
-- Ends the hold of alerts, and stores when. Actions of people on them can be undone as before.
update alert set held = false, held_until = now() where alert_id = any(@alert_ids::uuid[]) and held returning alert_id;

-- name: AlertDrop :many
delete from alert where alert_id = any(@alert_ids::uuid[]) and state = 'PENDING' returning alert_id;

-- name: AlertDropPending :exec
-- Deletes the pending alerts of a rule: nobody was notified of them, and nothing will decide on
-- them any more.
delete from alert where rule_id = @rule_id and state = 'PENDING';

-- name: AlertUncounted :many
-- Locks the open and the held alerts of a window rule about groups of another kind than those that
-- it counts by now. If the rule does not count any more, these are all its open and held alerts.
select alert_id, state
from alert
where rule_id = @rule_id and group_key is not null and (state <> 'RESOLVED' or held)
  and (not @counts::boolean or coalesce(count->>'groupBy', '') <> @group_by::text or coalesce(count->>'groupByAttribute', '') <> @attribute::text)
order by alert_id
for update;

-- name: AlertEndUncounted :exec
-- Resolves alerts, and ends their hold.
update alert
set state = 'RESOLVED', held = false, held_until = case when held then now() end, change = nextval('alert_change'),
    resolved_at = case when state = 'RESOLVED' then resolved_at else now() end,
    resolution = case when state = 'RESOLVED' then resolution else '{"reason": "EDIT"}' end
where alert_id = any(@alert_ids::uuid[]);
