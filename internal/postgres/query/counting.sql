-- name: AlertOpen :many
-- The open alerts of counting rules.
select alert_id, rule_id, group_key::text as group_key, state, fired_at, notified_at
from alert
where rule_id = any(@rule_ids::uuid[]) and group_key is not null and state <> 'RESOLVED';

-- name: AlertRaise :execrows
-- Opens an alert, unless one of its rule and group is open.
insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, group_key, count,
                   start_time_ns, application, route, exchange, signature, notified_at)
values (@alert_id, @tenant_id, @rule_id, @rule_version, @severity, @state::text, @title, @message, @group_key::text, @count::jsonb,
        @start_time_ns, @application, @route, @exchange::json, left(coalesce(@exchange::json->>'errorType', ''), 200), case when @state::text = 'FIRING' then now() end)
on conflict (rule_id, group_key) where group_key is not null and state <> 'RESOLVED' do nothing;

-- name: AlertFire :execrows
update alert
set state = 'FIRING', fired_at = now(), notified_at = now(), title = @title, message = @message, count = @count::jsonb,
    start_time_ns = @start_time_ns, application = @application, route = @route, exchange = @exchange::json,
    signature = left(coalesce(@exchange::json->>'errorType', ''), 200), change = nextval('alert_change')
where alert_id = @alert_id and state = 'PENDING';

-- name: AlertRemind :execrows
update alert
set notified_at = now(), title = @title, message = @message, count = @count::jsonb,
    start_time_ns = @start_time_ns, application = @application, route = @route, exchange = @exchange::json,
    signature = left(coalesce(@exchange::json->>'errorType', ''), 200), change = nextval('alert_change')
where alert_id = @alert_id and state = 'FIRING';

-- name: AlertClear :execrows
-- Resolves an alert; its texts stay those of the time when it fired.
update alert
set state = 'RESOLVED', resolved_at = now(), count = @count::jsonb, change = nextval('alert_change')
where alert_id = @alert_id and state in ('FIRING', 'ACKNOWLEDGED');

-- name: AlertDrop :execrows
delete from alert where alert_id = @alert_id and state = 'PENDING';

-- name: AlertDropPending :exec
-- Nobody has heard of them, and nobody will decide on them any more.
delete from alert where rule_id = @rule_id and state = 'PENDING';

-- name: NotificationOwe :execrows
-- Owes a notification for a step of an alert, whose row the transaction holds, to
-- a webhook that cannot be deleted before it ends; nothing where it is deleted
-- already. Reminders count up.
with owed as (
    insert into notification (notification_id, tenant_id, alert_id, rule_id, webhook_id, reason, generation)
    select @notification_id, @tenant_id, @alert_id::uuid, @rule_id::uuid, w.webhook_id, @reason::text, coalesce((
        select max(n.generation) + 1 from notification n
        where n.alert_id = @alert_id::uuid and n.webhook_id = w.webhook_id and n.reason = @reason::text), 0)
    from webhook w
    where w.webhook_id = @webhook_id and w.deleted_at is null
    for key share of w
    returning notification_id, webhook_id
)
insert into outbox (notification_id, webhook_id)
select notification_id, webhook_id from owed;
