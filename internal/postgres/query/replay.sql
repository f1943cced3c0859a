-- name: ReplayInsert :exec
insert into replay (replay_id, tenant_id, rule_id, rule_name, from_ns, to_ns, messages, position, created_by)
select @replay_id, r.tenant_id, r.rule_id, r.name, @from_ns, @to_ns, @messages, @position, @actor
from rule r where r.rule_id = @rule_id;

-- name: ReplayGet :one
select * from replay where tenant_id = @tenant_id and replay_id = @replay_id;

-- name: ReplayList :many
-- The newest come first, because ids ascend.
select * from replay
where tenant_id = @tenant_id and rule_id = @rule_id
order by replay_id desc
limit @most::int;

-- name: RuleReplays :many
-- Returns the replays under way in a partition.
select p.replay_id, p.rule_id, p.position, p.to_ns, p.messages
from replay p
join rule r using (rule_id)
join tenant_partition t on t.tenant_id = r.tenant_id
where t.partition = @partition and p.ended_at is null and r.enabled and r.deleted_at is null
order by p.rule_id;

-- name: ReplayAdvance :execrows
-- Stores how far a replay has come. Returns no row if it has ended.
update replay
set position = @position, matched = matched + @matched, alerts = alerts + @alerts, problem = @problem
where replay_id = @replay_id and ended_at is null;

-- name: ReplayEnd :many
-- Ends the replay of a rule that is under way, and makes the digests due that wait for it. Returns
-- a row for each digest, or one without a webhook; no row if no replay is under way.
with ended as (
    update replay
    set state = @state, problem = @problem, ended_by = @actor, ended_at = clock_timestamp()
    where rule_id = @rule_id and ended_at is null
    returning replay_id
), due as (
    update outbox o
    set after_id = null, ready_at = clock_timestamp(), due_at = clock_timestamp(), since = clock_timestamp()
    from ended
    where o.after_id = ended.replay_id
    returning o.webhook_id
)
select d.webhook_id from ended left join due d on true;

-- name: ReplayAlerts :one
-- Returns how many alerts a replay has raised before.
select alerts from replay where replay_id = @replay_id;

-- name: NotificationReplay :execrows
-- Records notifications in the digests of a replay, one digest at a time for each webhook, under
-- the conditions of [NotificationInsert]. A digest waits in the outbox until the replay ends.
-- Notifications for a discarded digest are discarded with it.
with held as materialized (
    select from webhook where webhook_id = any(@held_ids::uuid[]) order by webhook_id for key share
), given as (
    select unnest(@notification_ids::uuid[]) as notification_id, unnest(@tenant_ids::text[]) as tenant_id, unnest(@alert_ids::uuid[]) as alert_id,
           unnest(@rule_ids::uuid[]) as rule_id, unnest(@webhook_ids::uuid[]) as webhook_id, unnest(@reasons::text[]) as reason,
           unnest(@digest_ids::uuid[]) as digest_id
), recorded as (
    insert into notification (notification_id, tenant_id, alert_id, rule_id, webhook_id, reason)
    select notification_id, tenant_id, alert_id, rule_id, webhook_id, reason from given
    where (select count(*) from held) = cardinality(@held_ids::uuid[])
    returning notification_id
), gathered as (
    select g.digest_id, g.tenant_id, g.webhook_id, count(*)::int as size
    from recorded join given g using (notification_id)
    group by g.digest_id, g.tenant_id, g.webhook_id
), begun as (
    insert into notification (notification_id, tenant_id, webhook_id, reason)
    select digest_id, tenant_id, webhook_id, 'DIGEST' from gathered
    on conflict (notification_id) do nothing
    returning notification_id, webhook_id
), sized as (
    insert into digest as d (notification_id, size)
    select digest_id, size from gathered
    on conflict (notification_id) do update set size = d.size + excluded.size
), waiting as (
    insert into outbox (notification_id, webhook_id, after_id, ready_at, due_at, digest)
    select notification_id, webhook_id, @replay_id::uuid, null, null, true from begun
)
insert into digest_member (notification_id, digest_id)
select g.notification_id, g.digest_id from recorded join given g using (notification_id);
