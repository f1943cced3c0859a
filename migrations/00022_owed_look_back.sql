-- +goose Up

-- A cursor may move although not all of the look-back behind it has been judged.
-- Whoever evaluates next looks back to this start time at least, in nanoseconds since
-- the Unix epoch, however far the cursor has come; null is nothing but the look-back
-- that is counted from the cursor. It is written with the cursor, and belongs to it.
-- A member owes nothing of its own when it joins.
alter table rule_state add column owed_from_ns bigint;
alter table cohort add column owed_from_ns bigint;

create or replace view rule_progress as
select s.rule_id, s.armed_since_ns, s.former, s.swept_before_ns, s.problem, s.problem_at, s.cohort_id,
       coalesce(c.cursor, s.cursor) as cursor,
       coalesce(c.next_run_at, s.next_run_at) as next_run_at,
       coalesce(c.claim_token, s.claim_token) as claim_token,
       coalesce(c.claimed_by, s.claimed_by) as claimed_by,
       coalesce(c.claimed_until, s.claimed_until) as claimed_until,
       coalesce(c.last_run_at, s.last_run_at) as last_run_at,
       coalesce(c.owed_from_ns, s.owed_from_ns) as owed_from_ns
from rule_state s
left join cohort c using (cohort_id);
