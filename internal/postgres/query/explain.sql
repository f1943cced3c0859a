-- name: RulesExplained :many
-- Returns every rule of a tenant, its progress, and its alert about an exchange, with how many messages
-- there are about that and how many of them silences suppressed.
select sqlc.embed(r), p.armed_since_ns, p.former, p.swept_before_ns, p.problem,
       p.cursor, p.backfill_from_ns, p.backfill_cursor_ns, p.position, p.until, p.failing,
       exists (select from rule_failing f where f.rule_id = r.rule_id) as announced,
       a.alert_id, a.state,
       (select count(*) from notification n where n.alert_id = a.alert_id and n.about is null)::bigint as messages,
       (select count(*) from notification n join settlement s using (notification_id)
        where n.alert_id = a.alert_id and n.about is null and s.status = 'SUPPRESSED')::bigint as suppressed
from rule r
join rule_progress p using (rule_id)
left join alert a on a.rule_id = r.rule_id and a.execution_id = (@execution_key::text) collate "C"
where r.tenant_id = @tenant_id and r.deleted_at is null
order by r.name collate "C", r.rule_id;

-- name: AlertedStart :many
-- Returns when the exchange with an execution id began, if it has an alert.
select distinct a.start_time_ns::bigint as start_time_ns
from rule r
join alert a on a.rule_id = r.rule_id and a.execution_id = (@execution_key::text) collate "C"
where r.tenant_id = @tenant_id
order by 1 desc
limit 1;
