-- name: SilencesLive :many
-- Returns the silences of the tenants of alerts that have begun and not ended, and the instant by
-- which their windows are decided. The transaction holds them: the digest of what a silence suppressed
-- waits for it, and if a digest comes first, the row and its instant are read again. The tenants are
-- read once, from the rows of the alerts: as a join, each silence would read all alerts of its tenant.
select sqlc.embed(s), clock_timestamp()::timestamptz as now
from silence s
where s.tenant_id = any(array(select distinct a.tenant_id from alert a where a.alert_id = any(@alert_ids::uuid[]))) and s.ended_at is null and s.starts_at <= clock_timestamp()
  and (s.ends_at is null or s.ends_at > clock_timestamp())
order by s.created_at, s.silence_id
for share of s;

-- name: SilenceRules :many
-- Returns the properties of rules that silences match on.
select rule_id, scope, filter, about from rule where rule_id = any(@rule_ids::uuid[]);

-- name: SilenceAlerts :many
-- Returns the properties of alerts that silences match on. Alerts about Tocsin itself are left out.
select alert_id, tenant_id, rule_id, severity, exchange, count
from alert
where alert_id = any(@alert_ids::uuid[]) and not health;

-- name: NotificationSuppress :execrows
-- Records notifications that silences suppress, under the conditions of [NotificationInsert]. They are
-- settled at the instant of the decision, which is within the window that suppressed them.
with held as materialized (
    select from webhook where webhook_id = any(@held_ids::uuid[]) order by webhook_id for key share
), given as (
    select unnest(@notification_ids::uuid[]) as notification_id, unnest(@tenant_ids::text[]) as tenant_id, unnest(@alert_ids::uuid[]) as alert_id,
           unnest(@rule_ids::uuid[]) as rule_id, unnest(@webhook_ids::uuid[]) as webhook_id, unnest(@reasons::text[]) as reason,
           unnest(@silence_ids::uuid[]) as silence_id
), recorded as (
    insert into notification (notification_id, tenant_id, alert_id, rule_id, webhook_id, reason)
    select notification_id, tenant_id, alert_id, rule_id, webhook_id, reason from given
    where (select count(*) from held) = cardinality(@held_ids::uuid[])
    returning notification_id
)
insert into settlement (notification_id, tenant_id, status, settled_at, trail, silence_id)
select g.notification_id, g.tenant_id, 'SUPPRESSED', @decided_at::timestamptz, false, g.silence_id
from recorded join given g using (notification_id);

-- name: SilencesHold :one
-- Begins a change of a tenant's silences. Its partition commits nothing until the transaction ends:
-- a message is written either before the change, or according to it.
select c.partition
from checkpoint c join tenant_partition t using (partition)
where t.tenant_id = @tenant_id
for no key update of c;

-- name: SilenceInsert :one
-- No silence begins in the past: existing messages were decided without it.
insert into silence (silence_id, tenant_id, name, reason, match, starts_at, ends_at, recurrence, digest, created_by, updated_by)
values (@silence_id, @tenant_id, @name, @reason, @match, greatest(@starts_at::timestamptz, clock_timestamp()), @ends_at, @recurrence, @digest, @actor, @actor)
returning *;

-- name: SilenceLock :one
select * from silence where tenant_id = @tenant_id and silence_id = @silence_id
for update;

-- name: SilenceClock :one
-- Returns the present instant, after locks were waited for.
select clock_timestamp()::timestamptz;

-- name: SilenceUpdate :one
-- A silence that has begun keeps its start.
update silence
set name = @name, reason = @reason, match = @match, ends_at = @ends_at, recurrence = @recurrence, digest = @digest, digest_at = null,
    starts_at = case when starts_at <= clock_timestamp() then starts_at else greatest(@starts_at::timestamptz, clock_timestamp()) end,
    version = version + 1, updated_at = clock_timestamp(), updated_by = @actor
where silence_id = @silence_id
returning *;

-- name: SilenceEnd :one
update silence
set ended_at = clock_timestamp(), ended_by = @actor, version = version + 1, updated_at = clock_timestamp(), updated_by = @actor
where silence_id = @silence_id
returning *;

-- name: SilenceGet :one
select sqlc.embed(s), clock_timestamp()::timestamptz as now,
       (select count(*) from settlement t where t.silence_id = s.silence_id) as suppressed,
       (select count(*) from digest d where d.silence_id = s.silence_id) as digests
from silence s where s.tenant_id = @tenant_id and s.silence_id = @silence_id;

-- name: SilencesByID :many
select * from silence where silence_id = any(@silence_ids::uuid[]);

-- name: SilencesOpen :many
-- Returns the silences of a tenant that have not ended by their own definition.
select sqlc.embed(s), clock_timestamp()::timestamptz as now,
       (select count(*) from settlement t where t.silence_id = s.silence_id) as suppressed,
       (select count(*) from digest d where d.silence_id = s.silence_id) as digests
from silence s
where s.tenant_id = @tenant_id and s.ended_at is null and (s.ends_at is null or s.ends_at > clock_timestamp())
order by s.silence_id desc
limit @most;

-- name: SilencesPast :many
-- Returns the silences that have ended, those made last first.
select sqlc.embed(s), clock_timestamp()::timestamptz as now,
       (select count(*) from settlement t where t.silence_id = s.silence_id) as suppressed,
       (select count(*) from digest d where d.silence_id = s.silence_id) as digests
from silence s
where s.tenant_id = @tenant_id and (s.ended_at is not null or s.ends_at <= clock_timestamp())
  and (sqlc.narg(before_id)::uuid is null or s.silence_id < sqlc.narg(before_id)::uuid)
order by s.silence_id desc
limit @most;

-- name: SilencesOpenCount :one
select count(*) from silence
where tenant_id = @tenant_id and ended_at is null and (ends_at is null or ends_at > clock_timestamp()) and silence_id <> @other::uuid;

-- name: SilenceNamed :one
-- Returns whether another silence that has not ended has the name.
select exists (
    select from silence
    where tenant_id = @tenant_id and name = @name and silence_id <> @other::uuid
      and ended_at is null and (ends_at is null or ends_at > clock_timestamp()));

-- name: SilencePreview :many
-- Returns the newest alerts of the last day, and for each how many messages say that it was raised.
select a.alert_id, a.rule_id, a.severity, a.state, a.title, a.fired_at, a.exchange, a.count, a.application, a.route, r.name as rule_name,
       (select count(*) from notification n where n.alert_id = a.alert_id and n.reason = 'FIRED') as messages
from alert a join rule r using (rule_id)
where a.tenant_id = @tenant_id and not a.health and a.state <> 'PENDING' and a.fired_at >= clock_timestamp() - interval '24 hours'
order by a.fired_at desc, a.alert_id desc
limit @most;
