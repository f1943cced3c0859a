-- name: AuditActor :exec
-- Says in whose name the transaction at hand acts.
select set_config('tocsin.actor', @actor::text, true);

-- name: AuditOperation :exec
select audit_operation();
