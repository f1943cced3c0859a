-- name: PartitionList :many
select sqlc.embed(c), coalesce(c.lease_until > now(), false)::boolean as leased,
       (select count(*) from tenant_partition t where t.partition = c.partition) as tenants,
       coalesce((select t.tenant_id from tenant_partition t where t.partition = c.partition order by t.tenant_id limit 1), '')::text as tenant,
       (select count(*) from tenant_partition t join rule r using (tenant_id)
        where t.partition = c.partition and r.enabled and r.deleted_at is null) as rules,
       (extract(epoch from now()) * 1e9)::bigint as now_ns
from checkpoint c
order by c.share_of = 0, c.share_index, c.partition;

-- name: TenantList :many
-- Returns every tenant that has rules or had some, with the progress of its partition and the
-- position of the enabled rule that is furthest behind on its own.
select t.tenant_id, sqlc.embed(c), coalesce(c.lease_until > now(), false)::boolean as leased,
       count(r.rule_id) as rules, count(b.rule_id) as backfills, coalesce(min(b.position), '')::text as slowest,
       (extract(epoch from now()) * 1e9)::bigint as now_ns
from tenant_partition t
join checkpoint c using (partition)
left join rule r on r.tenant_id = t.tenant_id and r.enabled and r.deleted_at is null
left join rule_backfill b using (rule_id)
group by t.tenant_id, c.partition
order by t.tenant_id;

-- name: TeamList :many
-- Returns the owners of the enabled rules of each tenant, with the progress of its partition and the
-- position of their rule that is furthest behind on its own. The owner is '' for rules without one.
select r.tenant_id, coalesce(r.about ->> 'owner', '')::text as team, sqlc.embed(c),
       count(*) as rules, count(b.rule_id) as backfills, coalesce(min(b.position), '')::text as slowest,
       (extract(epoch from now()) * 1e9)::bigint as now_ns
from rule r
join tenant_partition t using (tenant_id)
join checkpoint c using (partition)
left join rule_backfill b using (rule_id)
where r.enabled and r.deleted_at is null
group by r.tenant_id, team, c.partition
order by r.tenant_id, team;

-- name: PartitionsHold :exec
-- Keeps others from changing rules, and from assigning and moving tenants.
select pg_advisory_xact_lock(hashtext('tocsin partitions'), 0);

-- name: CheckpointsHold :many
-- Waits for the commits under way; later ones wait.
select * from checkpoint order by partition for update;

-- name: TenantPartition :one
select partition from tenant_partition where tenant_id = @tenant_id;

-- name: TenantPartitions :many
select tenant_id, partition from tenant_partition order by tenant_id;

-- name: TenantKnown :one
select (exists (select from rule r where r.tenant_id = @tenant_id) or exists (select from tenant_partition t where t.tenant_id = @tenant_id))::boolean;

-- name: PartitionInsert :one
-- The revisions of a new partition begin above those of all former partitions.
insert into checkpoint (share_index, share_of, revision, rules_revision)
values (@share_index, @share_of, (extract(epoch from clock_timestamp()) * 1000000)::bigint, (extract(epoch from clock_timestamp()) * 1000000)::bigint)
returning *;

-- name: PartitionSet :one
-- Gives a partition other rules or another progress. The replica that holds it has to read both
-- again: the new revision is none that it can have seen, even if a failover has lost commits.
update checkpoint
set cursor = @cursor, backfill_from_ns = @backfill_from_ns, backfill_cursor_ns = @backfill_cursor_ns,
    clock_offset_ns = @clock_offset_ns, late_ns = @late_ns, watched_since_ns = @watched_since_ns, watched_until_ns = @watched_until_ns,
    watched_shown = @watched_shown, absence_judged_ns = @absence_judged_ns,
    revision = greatest(revision + 1, (extract(epoch from clock_timestamp()) * 1000000)::bigint),
    rules_revision = greatest(rules_revision + 1, (extract(epoch from clock_timestamp()) * 1000000)::bigint)
where partition = @partition
returning *;

-- name: TenantMove :exec
insert into tenant_partition (tenant_id, partition)
select unnest(@tenant_ids::text[]), unnest(@partitions::integer[])
on conflict (tenant_id) do update set partition = excluded.partition;

-- name: RulesMoved :exec
-- Makes the replica that holds a partition read again the rules of tenants that left or joined it.
insert into partition_rule (partition, rule_id, changed)
select c.partition, r.rule_id, c.rules_revision
from rule r cross join checkpoint c
where r.tenant_id = any(@tenant_ids::text[]) and r.deleted_at is null and c.partition = @partition
on conflict (partition, rule_id) do update set changed = excluded.changed;

-- name: LookBackOfTenants :one
select coalesce(max(look_back_seconds), 0)::integer as seconds from rule
where tenant_id = any(@tenant_ids::text[]) and enabled and deleted_at is null;

-- name: TenantsWithAbsence :many
-- Returns the tenants for which the source is watched, with their partitions.
select distinct t.tenant_id, t.partition
from rule r join tenant_partition t using (tenant_id)
where r.fire_mode = 'ABSENT_IN_WINDOW' and r.enabled and r.deleted_at is null;

-- name: PartitionsRetire :exec
-- Takes the shares from partitions that are about to be deleted.
update checkpoint set share_index = 0, share_of = 0 where partition = any(@partitions::integer[]);

-- name: PartitionDelete :exec
delete from checkpoint where partition = any(@partitions::integer[]);
