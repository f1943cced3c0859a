-- name: CohortAdvance :many
-- The first statement of a commit, before any row of rule_state: whoever leaves a
-- cohort waits for it. Next runs are found as for rules.
update cohort c
set cursor = a.to_cursor,
    owed_from_ns = a.owed_from_ns,
    next_run_at = case when a.at_once then now()
        when a.release and c.interval_seconds = 1 and sqlc.narg(least_due_at)::timestamptz is not null
            then greatest(sqlc.narg(least_due_at)::timestamptz, now())
        when a.release then greatest(
            date_bin(make_interval(secs => c.interval_seconds), c.next_run_at, 'epoch') + make_interval(secs => c.interval_seconds),
            date_bin(make_interval(secs => c.interval_seconds), now(), 'epoch'))
        else c.next_run_at end,
    claimed_until = case when a.release then null else now() + @claim_for::interval end,
    claimed_by = case when a.release then null else c.claimed_by end,
    claim_token = case when a.release then null else c.claim_token end,
    last_run_at = now()
from (
    select unnest(@cohort_ids::uuid[]) as cohort_id,
           unnest(@tokens::bigint[]) as token,
           unnest(@from_cursors::text[]) as from_cursor,
           unnest(@to_cursors::text[]) as to_cursor,
           nullif(unnest(@owed_from_ns::bigint[]), 9223372036854775807) as owed_from_ns,
           unnest(@releases::boolean[]) as release,
           unnest(@at_once::boolean[]) as at_once
) a
where c.cohort_id = a.cohort_id and c.claim_token = a.token and c.cursor = a.from_cursor
returning c.cohort_id;

-- name: CohortFinders :many
-- Of the rules that found something with a cohort that has advanced, those that
-- are still members, and their watermarks, held until the transaction ends.
select s.rule_id, s.swept_before_ns
from rule_state s
join (
    select unnest(@rule_ids::uuid[]) as rule_id, unnest(@versions::bigint[]) as version, unnest(@cohort_ids::uuid[]) as cohort_id
) f on f.rule_id = s.rule_id and f.cohort_id = s.cohort_id
join rule r on r.rule_id = f.rule_id and r.version = f.version and r.enabled and r.deleted_at is null
where f.cohort_id = any(@advanced::uuid[])
order by s.rule_id
for no key update of s;

-- name: CohortLeave :many
-- Gives members, or all of them, progress of their own where the cohort stands.
-- They are due at once. Without a token the caller holds the cohort already.
with held as (
    select c.cohort_id, c.cursor, c.owed_from_ns, c.last_run_at
    from cohort c
    where c.cohort_id = @cohort_id and (sqlc.narg(token)::bigint is null or c.claim_token = sqlc.narg(token)::bigint)
    for update
), gone as (
    update rule_state s
    set cohort_id = null, cursor = held.cursor, owed_from_ns = least(held.owed_from_ns, s.owed_from_ns), last_run_at = held.last_run_at, next_run_at = now(),
        problem = l.problem, problem_at = case when l.problem is not null then now() end
    from held, (select unnest(@rule_ids::uuid[]) as rule_id, nullif(unnest(@problems::text[]), '') as problem) l
    where s.cohort_id = held.cohort_id and s.rule_id = l.rule_id
    returning s.rule_id
), shrunk as (
    update cohort c
    set members = c.members - (select count(*)::int from gone), revision = c.revision + 1
    from held
    where c.cohort_id = held.cohort_id and exists (select from gone)
)
select rule_id from gone order by rule_id;

-- name: CohortEnd :exec
-- Deletes a claimed cohort without members.
delete from cohort where cohort_id = @cohort_id and claim_token = @token::bigint and members = 0;

-- name: CohortMembers :many
select s.rule_id, r.version, s.armed_since_ns
from rule_state s
join rule r using (rule_id)
where s.cohort_id = @cohort_id
order by s.rule_id;

-- name: CohortHold :one
-- Holds a cohort that nobody evaluates and whose members this replica knows, if
-- it stands within bounds.
select cursor
from cohort
where cohort_id = @cohort_id and claim_token is null and home = @replica::text
  and cursor <= @not_after::text and cursor >= @not_before::text
for update;

-- name: CohortInsert :exec
insert into cohort (cohort_id, tenant_id, interval_seconds, look_back_seconds, cursor, next_run_at, last_run_at, home, members)
values (@cohort_id, @tenant_id, @interval_seconds, @look_back_seconds, @cursor, now(), now(), @replica::text, 0);

-- name: CohortJoin :one
-- Lets rules join a cohort that is held, and returns how many did: those that
-- nobody edits or evaluates at this moment, and that have come at least as far.
-- Edits are not waited for, since they may wait for the cohort. The cohort of
-- nothing but newcomers is due with the first of them.
with steady as (
    select r.rule_id
    from rule r
    join (select unnest(@rule_ids::uuid[]) as rule_id, unnest(@versions::bigint[]) as version) j
        on j.rule_id = r.rule_id and j.version = r.version
    where r.enabled and r.deleted_at is null
    for share of r skip locked
), held as (
    select s.rule_id, s.next_run_at
    from rule_state s
    join steady using (rule_id)
    where s.cohort_id is null and s.claim_token is null and s.problem is null and s.next_run_at is not null
      and s.cursor >= @cursor::text and s.owed_from_ns is null
    for update of s skip locked
), joined as (
    update rule_state s
    set cohort_id = @cohort_id, cursor = null, next_run_at = null, last_run_at = null, claimed_by = null, claimed_until = null, problem_at = null
    from held
    where s.rule_id = held.rule_id
    returning held.next_run_at
), grown as (
    update cohort c
    set members = c.members + (select count(*)::int from joined), revision = c.revision + 1,
        next_run_at = case when c.members = 0 then (select min(next_run_at) from joined) else c.next_run_at end
    where c.cohort_id = @cohort_id and exists (select from joined)
)
select count(*) from joined;

-- name: CohortJoined :exec
-- Tells the planner that most rules have no next run of their own any more. Until
-- autovacuum does, each claim would look at all of them.
analyze rule_state;

-- name: RuleCohort :one
select cohort_id from rule_state where rule_id = @rule_id;
