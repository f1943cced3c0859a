-- name: RoutingPolicyGet :one
select * from routing_policy where tenant_id = @tenant_id;

-- name: RoutingPolicies :many
select tenant_id, policy, version from routing_policy where tenant_id = any(@tenant_ids::text[]);

-- name: RoutingPolicyWrite :exec
insert into routing_policy as p (tenant_id, policy, version, updated_by) values (@tenant_id, @policy, @version, @actor)
on conflict (tenant_id) do update
set policy = excluded.policy, version = excluded.version, updated_at = clock_timestamp(), updated_by = excluded.updated_by;

-- name: RoutingRulesChanged :exec
-- Makes the replica that evaluates the partition read again the rules of a tenant that use its
-- policy.
insert into partition_rule (partition, rule_id, changed)
select @partition, r.rule_id, @changed from rule r
where r.tenant_id = @tenant_id and r.use_routing_policy and r.deleted_at is null
on conflict (partition, rule_id) do update set changed = excluded.changed;

-- name: RoutingRulesCount :one
-- Returns how many rules of a tenant use its policy.
select count(*) from rule where tenant_id = @tenant_id and use_routing_policy and deleted_at is null;

-- name: WebhooksGone :many
-- Returns those of some webhooks that are deleted.
select webhook_id from webhook where webhook_id = any(@webhook_ids::uuid[]) and deleted_at is not null;
