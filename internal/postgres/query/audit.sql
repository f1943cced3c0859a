-- name: AuditActor :exec
-- Sets the actor on whose behalf the transaction acts.
select set_config('tocsin.actor', @actor::text, true);

-- name: AuditOperation :exec
select audit_operation();
