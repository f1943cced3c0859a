-- name: ActionBegin :one
-- Stores an action under a number of its own. Returns no row if the action is already stored.
insert into alert_action (tenant_id, action_id, actor, action, selection, change)
select @tenant_id::text, @action_id::uuid, @actor::text, @deed::text, @selection::bytea, nextval('alert_change')
on conflict do nothing
returning change;

-- name: ActionGet :one
select sqlc.embed(a), a.at > now() - @undo_within::interval as undoable
from alert_action a where tenant_id = @tenant_id and action_id = @action_id
for update;

-- name: ActionDone :one
update alert_action
set changed = @changed, already = @already, refused = @refused, unknown = @unknown
where tenant_id = @tenant_id and action_id = @action_id
returning *;

-- name: ActionForget :exec
delete from alert_action where tenant_id = @tenant_id and at < now() - interval '1 day';

-- name: ActionUndone :exec
update alert_action set undone_at = now(), restored = @restored where tenant_id = @tenant_id and action_id = @action_id;

-- name: AlertRestore :many
-- Restores the alerts that have the change number of an action. These alerts stay resolved:
--
-- - a counting alert, if another alert of its group is open or held;
-- - an alert about a rule's health, if the rule has recovered;
-- - an alert about a webhook that was disabled, if it is not disabled any more.
--
-- An edit that enables the webhook waits for the lock, and so resolves what is restored here.
with candidate as materialized (
    select a.alert_id, a.rule_id, a.group_key, a.health, a.webhook_id, a.state
    from alert a
    where a.tenant_id = @tenant_id and a.change = @change
    order by a.alert_id
    for update
), off as materialized (
    select w.webhook_id from webhook w
    where w.webhook_id in (select c.webhook_id from candidate c where c.state = 'RESOLVED')
      and not w.enabled and w.disabled_reason <> '' and w.deleted_at is null
    for share
), restored as (
    update alert a
    set state = case when a.state = 'RESOLVED' and a.acknowledged_at is not null then 'ACKNOWLEDGED' else 'FIRING' end,
        acknowledged_at = case when a.state = 'RESOLVED' then a.acknowledged_at end,
        acknowledged_by = case when a.state = 'RESOLVED' then a.acknowledged_by else '' end,
        resolved_at = null, resolved_by = '', held = false, held_until = null, change = @restored_change
    from candidate c
    where a.alert_id = c.alert_id
      and (a.state = 'ACKNOWLEDGED'
           or (not exists (select from alert o where o.rule_id = c.rule_id and o.group_key = c.group_key and (o.state <> 'RESOLVED' or o.held) and o.alert_id <> c.alert_id)
               and (not c.health
                    or exists (select from rule_failing f where f.rule_id = c.rule_id and f.alert_id = c.alert_id)
                    or (exists (select from off w where w.webhook_id = c.webhook_id)
                        and not exists (select from alert o where o.webhook_id = c.webhook_id and o.state <> 'RESOLVED')))))
    returning a.alert_id
)
select alert_id from restored;

-- name: AssignmentRestore :many
-- Restores the former assignees of alerts that an action assigned and that were not changed since.
with candidate as materialized (
    select a.alert_id, b.assignee, b.assigned_by, b.assigned_at
    from alert_assignment_before b join alert a using (alert_id)
    where b.tenant_id = @tenant_id and b.action_id = @action_id and a.change = b.change
    order by a.alert_id
    for update of a
), again as (
    insert into alert_assignment (alert_id, tenant_id, assignee, assigned_by, assigned_at)
    select c.alert_id, @tenant_id, c.assignee, c.assigned_by, c.assigned_at from candidate c where c.assignee is not null
    on conflict (alert_id) do update
    set assignee = excluded.assignee, assigned_by = excluded.assigned_by, assigned_at = excluded.assigned_at
), ended as (
    delete from alert_assignment h using candidate c where h.alert_id = c.alert_id and c.assignee is null
)
update alert a set change = @restored_change from candidate c where a.alert_id = c.alert_id
returning a.alert_id;

-- name: AlertChangeNext :one
select nextval('alert_change')::bigint;

-- name: ReaderGet :one
select read_up_to from reader where tenant_id = @tenant_id and actor = @actor;

-- name: ReaderUnreadFrom :one
-- Returns an instant before which a reader has read everything.
select least(@read_up_to::timestamptz, (
    select min(a.fired_at) from alert_read k join alert a using (alert_id)
    where k.tenant_id = @tenant_id and k.actor = @actor and not k.read))::timestamptz;

-- name: ReaderAdvance :exec
insert into reader (tenant_id, actor, read_up_to)
values (@tenant_id, @actor, least(@up_to::timestamptz, now()))
on conflict (tenant_id, actor) do update set read_up_to = greatest(reader.read_up_to, excluded.read_up_to);

-- name: ReadForget :exec
-- Deletes the rows that the mark of a reader makes redundant.
delete from alert_read x using alert a
where x.tenant_id = @tenant_id and x.actor = @actor and a.alert_id = x.alert_id and a.fired_at <= @up_to;

-- name: AlertAnnotations :many
-- Returns what a list shows beside the alerts of a page.
select a.alert_id,
       (not coalesce(x.read, a.fired_at <= @read_up_to::timestamptz))::boolean as unread,
       (exists (select from unnest(@mine::text[]) as m (target) where jsonb_contains(r.targets, m.target::jsonb))
        or coalesce(r.about->>'owner' = any(@teams::text[]), false)
        or coalesce(h.assignee = any(@assignees::text[]), false))::boolean as mine,
       d.total::bigint as total, d.delivered::bigint as delivered, d.retrying::bigint as retrying, d.failed::bigint as failed, d.suppressed::bigint as suppressed, d.discarded::bigint as discarded,
       coalesce(d.next_attempt_at, 'epoch')::timestamptz as next_attempt_at, coalesce(d.quiet_until, 'epoch')::timestamptz as quiet_until,
       u.action_id as undoable_id, u.at as undoable_at, u.changed as undoable_alerts
from alert a
join rule r using (rule_id)
left join alert_action u on u.tenant_id = a.tenant_id and u.change = a.change and u.actor = @actor and u.action <> 'assign'
     and u.undone_at is null and u.at > now() - @undo_within::interval
left join alert_assignment h using (alert_id)
left join alert_read x on x.tenant_id = a.tenant_id and x.actor = @actor and x.alert_id = a.alert_id
cross join lateral (
    select count(*) as total,
           count(*) filter (where s.status = 'DELIVERED') as delivered,
           count(*) filter (where s.status = 'RETRYING') as retrying,
           count(*) filter (where s.status in ('FAILED', 'EXHAUSTED')) as failed,
           count(*) filter (where s.status = 'SUPPRESSED') as suppressed,
           count(*) filter (where s.status = 'DISCARDED') as discarded,
           min(s.next_attempt_at) as next_attempt_at, min(s.quiet_until) as quiet_until
    from notification_status s where s.alert_id = a.alert_id
) d
where a.tenant_id = @tenant_id and a.alert_id = any(@alert_ids::uuid[]);

-- name: AlertsChangedSince :one
select count(*) from (
    select from alert a where a.tenant_id = @tenant_id and a.change > @since order by a.change desc limit @most::bigint
) changed;
