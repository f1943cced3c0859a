-- name: RuleList :many
select sqlc.embed(r), s.armed_since_ns,
       array(select rw.webhook_id from rule_webhook rw where rw.rule_id = r.rule_id order by rw.position)::uuid[] as webhook_ids
from rule r
join rule_state s using (rule_id)
where r.tenant_id = @tenant_id and r.deleted_at is null
  and (sqlc.narg(after_name)::text is null
       or (r.name collate "C", r.rule_id) > (sqlc.narg(after_name)::text collate "C", @after_id::uuid))
order by r.name collate "C", r.rule_id
limit @most::int;

-- name: RuleGet :one
select sqlc.embed(r), s.armed_since_ns,
       array(select rw.webhook_id from rule_webhook rw where rw.rule_id = r.rule_id order by rw.position)::uuid[] as webhook_ids
from rule r
join rule_state s using (rule_id)
where r.tenant_id = @tenant_id and r.rule_id = @rule_id and r.deleted_at is null;

-- name: RuleHealth :many
select s.rule_id, s.cursor, s.owed_from_ns, s.last_run_at, s.next_run_at, s.problem, s.problem_at,
       (extract(epoch from now()) * 1e9)::bigint as now_ns,
       r.enabled,
       (select count(*) from alert a
        where a.rule_id = s.rule_id and a.late and a.fired_at > now() - interval '1 hour') as late_last_hour
from rule_progress s
join rule r using (rule_id)
where r.tenant_id = @tenant_id and s.rule_id = any(@rule_ids::uuid[]) and r.deleted_at is null;

-- name: RuleInsert :exec
insert into rule (rule_id, tenant_id, name, enabled, fire_mode, severity, scope, filter, title_template, message_template,
                  targets, interval_seconds, look_back_seconds, re_notify_minutes, for_duration_seconds,
                  threshold, window_seconds, group_by, notify_on_resolve)
values (@rule_id, @tenant_id, @name, @enabled, @fire_mode, @severity, @scope, @filter, @title_template, @message_template,
        @targets, @interval_seconds, @look_back_seconds, @re_notify_minutes, @for_duration_seconds,
        @threshold, @window_seconds, @group_by, @notify_on_resolve);

-- name: RuleStateInsert :exec
-- Arms a new rule from now on.
insert into rule_state (rule_id, armed_since_ns, next_run_at)
values (@rule_id, (extract(epoch from now()) * 1000000)::bigint * 1000,
        case when @enabled::boolean then now() end);

-- name: RuleHold :one
-- Holds the rule against other edits, and against joining a cohort.
select rule_id from rule where tenant_id = @tenant_id and rule_id = @rule_id and deleted_at is null for no key update;

-- name: RuleLock :one
-- Holds the rule and its state against commits and other edits. The lock on
-- the rule lets foreign keys to it pass: a commit takes them after the state.
select r.version, r.enabled, r.fire_mode, r.scope, r.filter, s.armed_since_ns, s.former, s.cursor, s.owed_from_ns
from rule r join rule_state s using (rule_id)
where r.tenant_id = @tenant_id and r.rule_id = @rule_id and r.deleted_at is null
for no key update;

-- name: RuleUpdate :exec
update rule
set name = @name, enabled = @enabled, fire_mode = @fire_mode, severity = @severity, scope = @scope, filter = @filter,
    title_template = @title_template, message_template = @message_template, targets = @targets,
    interval_seconds = @interval_seconds, look_back_seconds = @look_back_seconds,
    re_notify_minutes = @re_notify_minutes, for_duration_seconds = @for_duration_seconds,
    threshold = @threshold, window_seconds = @window_seconds, group_by = @group_by, notify_on_resolve = @notify_on_resolve,
    version = version + 1, updated_at = now()
where rule_id = @rule_id;

-- name: RuleSetEnabled :exec
update rule set enabled = @enabled, version = version + 1, updated_at = now() where rule_id = @rule_id;

-- name: RuleArm :exec
-- Arms a rule anew: what ended before now is history to it. Now is when the state
-- is held: what was judged by then lies before it, however long that was waited for.
update rule_state
set armed_since_ns = (extract(epoch from clock_timestamp()) * 1000000)::bigint * 1000, former = '[]', cursor = null, owed_from_ns = null,
    next_run_at = now(), claim_token = null, claimed_by = null, claimed_until = null, problem = null, problem_at = null
where rule_id = @rule_id;

-- name: RuleDisarm :exec
update rule_state
set next_run_at = null, owed_from_ns = null, claim_token = null, claimed_by = null, claimed_until = null, problem = null,
    problem_at = null
where rule_id = @rule_id;

-- name: RuleTurn :exec
-- Another condition judges what ends from now on; the cursor stays.
update rule_state
set armed_since_ns = @armed_since_ns, former = @former, problem = null, problem_at = null
where rule_id = @rule_id;

-- name: RuleRelease :exec
-- Takes an edited rule from whoever evaluates its former version, whose commit
-- would be refused anyway: nobody has to wait for the claim to lapse. An enabled
-- rule is due at once, as its interval may have been a long one.
update rule_state
set claim_token = null, claimed_by = null, claimed_until = null,
    next_run_at = case when next_run_at is not null then least(next_run_at, now()) end
where rule_id = @rule_id;

-- name: RuleDelete :execrows
update rule set deleted_at = now(), enabled = false, version = version + 1
where tenant_id = @tenant_id and rule_id = @rule_id and deleted_at is null;

-- name: RuleStateDelete :exec
delete from rule_state where rule_id = @rule_id;

-- name: RuleWebhookDelete :exec
-- Unbinds all but some webhooks.
delete from rule_webhook where rule_id = @rule_id and not (webhook_id = any(coalesce(@keep::uuid[], '{}')));

-- name: WebhookShare :many
-- Holds the webhooks that a rule is about to bind, against their deletion.
select webhook_id from webhook
where tenant_id = @tenant_id and webhook_id = any(@webhook_ids::uuid[]) and deleted_at is null
for share;

-- name: RuleWebhookInsert :exec
insert into rule_webhook (rule_id, webhook_id, position)
select @rule_id, w.webhook_id, w.position
from unnest(@webhook_ids::uuid[]) with ordinality as w (webhook_id, position)
on conflict (rule_id, webhook_id) do update set position = excluded.position where rule_webhook.position <> excluded.position;

-- name: RuleApplyBegin :exec
-- One application of a document at a time, for a tenant.
select pg_advisory_xact_lock(hashtextextended('apply rules of ' || @tenant_id::text, 0));

-- name: RuleApplyHold :exec
-- Holds every rule against other edits; commits of the evaluator pass.
select from rule where tenant_id = @tenant_id and deleted_at is null order by rule_id for no key update;

-- name: RuleTurnAt :one
-- The instant, in nanoseconds, from which another condition judges. Asked for
-- once the state is held: what the former one has judged by then lies before it,
-- however long the transaction had to wait.
select (extract(epoch from clock_timestamp()) * 1000000000)::bigint;
