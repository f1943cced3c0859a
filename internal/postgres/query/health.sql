-- name: RuleFailingClaim :many
-- Claims the telling of rules that cannot be evaluated; those already told are
-- left out.
insert into rule_failing (rule_id, alert_id)
select unnest(@rule_ids::uuid[]), unnest(@alert_ids::uuid[])
on conflict (rule_id) do nothing
returning rule_id;

-- name: RuleFailingEnd :many
-- Ends the failing of rules, and says of which it had been told.
delete from rule_failing where rule_id = any(@rule_ids::uuid[]) returning rule_id, alert_id;

-- name: AlertRaiseHealth :exec
insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, health,
                   start_time_ns, application, route, exchange)
values (@alert_id, @tenant_id, @rule_id, @rule_version, @severity, 'FIRING', @title, @message, true, 0, '', '', '{}');

-- name: AlertRecover :one
update alert
set state = 'RESOLVED', resolved_at = coalesce(resolved_at, now()), change = nextval('alert_change')
where alert_id = @alert_id
returning tenant_id;

-- name: OperatorWebhooks :many
-- Those that are not deleted, nor can be before the transaction ends.
select webhook_id from webhook
where tenant_id = @tenant_id and operators and deleted_at is null
order by webhook_id
for key share;

-- name: RuleRetry :exec
update rule_state
set problem = null, problem_at = null, next_run_at = now(), claim_token = null, claimed_by = null, claimed_until = null
where rule_id = @rule_id and next_run_at is not null;
