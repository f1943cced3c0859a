-- name: RuleClaim :many
-- Takes due cohorts and due rules under a token and a claim that lapses. A cohort
-- is left to the replica that knows its members, unless it is late.
--
-- Where it takes nothing it returns one row without a token, which says for how many
-- microseconds, rounded down, there will be nothing to take: none while a rule is due
-- that another replica holds, as it may let go of it at any moment.
with due_cohorts as (
    select cohort_id
    from cohort
    where next_run_at <= now()
      and (claimed_until is null or claimed_until <= now())
      and (home is null or home = @replica::text or next_run_at <= now() - @grace::interval)
    order by next_run_at, cohort_id
    for update skip locked
), claimed_cohorts as (
    update cohort c
    set claim_token = nextval('claim_token'),
        claimed_by = @replica::text,
        claimed_until = now() + @claim_for::interval,
        home = @replica::text
    from due_cohorts d
    where c.cohort_id = d.cohort_id
    returning c.cohort_id, c.tenant_id, c.interval_seconds, c.look_back_seconds, c.revision, c.cursor, c.owed_from_ns, c.claim_token
), due as (
    select rule_id
    from rule_state
    where next_run_at <= now()
      and (claimed_until is null or claimed_until <= now())
    order by next_run_at, rule_id
    limit @most::int
    for update skip locked
), claimed as (
    update rule_state s
    set claim_token = nextval('claim_token'),
        claimed_by = @replica::text,
        claimed_until = now() + @claim_for::interval
    from due
    where s.rule_id = due.rule_id
    returning s.rule_id, s.armed_since_ns, s.cursor, s.owed_from_ns, s.claim_token
), free as (
    select least(
        now() + @rest::interval,
        (select min(next_run_at) from rule_state),
        (select min(greatest(
                    next_run_at + case when home is null or home = @replica::text then interval '0' else @grace::interval end,
                    claimed_until))
         from cohort)) as at
)
select c.rule_id as id, false as cohort, r.version, c.armed_since_ns, c.cursor, c.owed_from_ns, c.claim_token::bigint as claim_token,
       now()::timestamptz as claimed_at, ''::text as tenant_id, 0::int as interval_seconds, 0::int as look_back_seconds, 0::bigint as idle_us
from claimed c
join rule r using (rule_id)
union all
select c.cohort_id, true, c.revision, 0, c.cursor, c.owed_from_ns, c.claim_token, now(), c.tenant_id, c.interval_seconds, c.look_back_seconds, 0
from claimed_cohorts c
union all
select '00000000-0000-0000-0000-000000000000', false, 0, 0, null, null, 0, now(), '', 0, 0,
       greatest(floor(extract(epoch from f.at - now()) * 1000000), 0)::bigint
from free f
where not exists (select from claimed) and not exists (select from claimed_cohorts)
order by 1;

-- name: RuleDefinitions :many
-- What a claimed rule says, for those not known in their present version.
select sqlc.embed(r), s.armed_since_ns, s.former,
       array(select rw.webhook_id from rule_webhook rw where rw.rule_id = r.rule_id order by rw.position)::uuid[] as webhook_ids
from rule r
join rule_state s using (rule_id)
where r.rule_id = any(@rule_ids::uuid[]);

-- name: CursorAdvance :many
-- The first statement of a commit: each claim's cursor by compare-and-set under
-- its token and rule version. What it does not return is stale. What began before
-- a rule's watermark may have had its alert, which retention deleted; no watermark
-- moves until the transaction ends. What is owed goes with the cursor; the largest
-- bigint says that nothing is. Told are those of which operators know that they
-- failed, so that a commit has one statement less where nobody does. A rule that
-- was not judged keeps what is known of its last run, and whoever was told that it
-- fails hears nothing.
--
-- Rules of one interval become due at the same instants, multiples of it, so
-- that they share their scans whenever they were made. A rule that was due and
-- is late becomes due at the last such instant, which may be at once: were it
-- the next one, a tick that ends just after an instant would cost the rule the
-- following tick. Rules of the least interval are due at every tick instead, and
-- have no instants: the caller says when the next tick may take them.
update rule_state s
set cursor = a.to_cursor,
    owed_from_ns = a.owed_from_ns,
    next_run_at = case when a.at_once then now()
        when a.release and r.interval_seconds = 1 and sqlc.narg(least_due_at)::timestamptz is not null
            then greatest(sqlc.narg(least_due_at)::timestamptz, now())
        when a.release then greatest(
            date_bin(make_interval(secs => r.interval_seconds), s.next_run_at, 'epoch') + make_interval(secs => r.interval_seconds),
            date_bin(make_interval(secs => r.interval_seconds), now(), 'epoch'))
        else s.next_run_at end,
    claimed_until = case when a.release then null else now() + @claim_for::interval end,
    claimed_by = case when a.release then null else s.claimed_by end,
    claim_token = case when a.release then null else s.claim_token end,
    last_run_at = case when a.unjudged then s.last_run_at else now() end,
    problem = case when a.unjudged then s.problem else a.problem end,
    problem_at = case when a.unjudged then s.problem_at
        when a.problem is null then null
        when s.problem is null then now()
        else s.problem_at end
from (
    select unnest(@rule_ids::uuid[]) as rule_id,
           unnest(@tokens::bigint[]) as token,
           unnest(@versions::bigint[]) as version,
           nullif(unnest(@from_cursors::text[]), '') as from_cursor,
           unnest(@to_cursors::text[]) as to_cursor,
           nullif(unnest(@owed_from_ns::bigint[]), 9223372036854775807) as owed_from_ns,
           unnest(@releases::boolean[]) as release,
           unnest(@at_once::boolean[]) as at_once,
           unnest(@unjudged::boolean[]) as unjudged,
           nullif(unnest(@problems::text[]), '') as problem
) a
join rule r on r.rule_id = a.rule_id and r.version = a.version and r.enabled and r.deleted_at is null
where s.rule_id = a.rule_id
  and s.claim_token = a.token
  and s.cursor is not distinct from a.from_cursor
returning s.rule_id, s.swept_before_ns, (not a.unjudged and exists (select from rule_failing f where f.rule_id = s.rule_id))::boolean as told;

-- name: AlertInsert :exec
-- Inserts alerts, or fails where one of them exists. No join stands here: it
-- would turn the order of the rows around, and indexes grow best when ids ascend.
insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message,
                   execution_id, start_time_ns, application, route, exchange, signature, late, late_by_ns)
select i.alert_id, i.tenant_id, i.rule_id, i.rule_version, i.severity, 'FIRING', i.title, i.message,
       i.execution_id, i.start_time_ns, i.application, i.route, i.exchange, i.signature, i.late,
       greatest(0, (select (extract(epoch from now()) * 1e9)::bigint) - i.ended_ns)
from (
    select unnest(@alert_ids::uuid[]) as alert_id, unnest(@tenant_ids::text[]) as tenant_id, unnest(@rule_ids::uuid[]) as rule_id,
           unnest(@rule_versions::bigint[]) as rule_version, unnest(@severities::text[]) as severity,
           unnest(@titles::text[]) as title, unnest(@messages::text[]) as message, unnest(@execution_ids::text[]) as execution_id,
           unnest(@start_times_ns::bigint[]) as start_time_ns, unnest(@applications::text[]) as application,
           unnest(@routes::text[]) as route, unnest(@exchanges::json[]) as exchange, unnest(@signatures::text[]) as signature,
           unnest(@lates::boolean[]) as late, unnest(@ended_ns::bigint[]) as ended_ns
) i;

-- name: AlertInsertMissing :many
-- Inserts the alerts that do not exist yet, and returns those; so much dearer
-- that it is for where some exist.
insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message,
                   execution_id, start_time_ns, application, route, exchange, signature, late, late_by_ns)
select i.alert_id, i.tenant_id, i.rule_id, i.rule_version, i.severity, 'FIRING', i.title, i.message,
       i.execution_id, i.start_time_ns, i.application, i.route, i.exchange, i.signature, i.late,
       greatest(0, (select (extract(epoch from now()) * 1e9)::bigint) - i.ended_ns)
from (
    select unnest(@alert_ids::uuid[]) as alert_id, unnest(@tenant_ids::text[]) as tenant_id, unnest(@rule_ids::uuid[]) as rule_id,
           unnest(@rule_versions::bigint[]) as rule_version, unnest(@severities::text[]) as severity,
           unnest(@titles::text[]) as title, unnest(@messages::text[]) as message, unnest(@execution_ids::text[]) as execution_id,
           unnest(@start_times_ns::bigint[]) as start_time_ns, unnest(@applications::text[]) as application,
           unnest(@routes::text[]) as route, unnest(@exchanges::json[]) as exchange, unnest(@signatures::text[]) as signature,
           unnest(@lates::boolean[]) as late, unnest(@ended_ns::bigint[]) as ended_ns
) i
on conflict (rule_id, execution_id) do nothing
returning alert_id;

-- name: NotificationInsert :one
-- Records what is owed, in the order given, to webhooks that cannot be deleted
-- before the transaction ends; nothing where one of them is gone. It returns how
-- many were recorded, and the instant of the transaction.
with held as materialized (
    select from webhook where webhook_id = any(@held_ids::uuid[]) order by webhook_id for key share
), recorded as (
    insert into notification (notification_id, tenant_id, alert_id, rule_id, webhook_id, reason)
    select unnest(@notification_ids::uuid[]), unnest(@tenant_ids::text[]), unnest(@alert_ids::uuid[]),
           unnest(@rule_ids::uuid[]), unnest(@webhook_ids::uuid[]), unnest(@reasons::text[])
    where (select count(*) from held) = cardinality(@held_ids::uuid[])
    returning 1
)
select count(*) as recorded, now()::timestamptz as at from recorded;

-- name: OutboxInsert :exec
insert into outbox (notification_id, webhook_id)
select unnest(@notification_ids::uuid[]), unnest(@webhook_ids::uuid[]);

-- name: Clock :one
-- The present, not the beginning of a transaction.
select clock_timestamp()::timestamptz as at;

-- name: RuleProblem :many
-- Records what went wrong and releases the claims that still stand. Cursor and
-- next run stay as they were: the next tick does the same work again.
update rule_state s
set problem = @problem::text, problem_at = coalesce(s.problem_at, now()),
    claim_token = null, claimed_by = null, claimed_until = null
from (select unnest(@rule_ids::uuid[]) as rule_id, unnest(@tokens::bigint[]) as token) f
where s.rule_id = f.rule_id and s.claim_token = f.token
returning s.rule_id;
