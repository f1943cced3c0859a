-- +goose Up

-- Rules that advance together: one cursor, one claim and one next run for all of
-- them, so that a tick writes one row and not two for each rule. What belongs to
-- a member alone stays in its row of rule_state.
create table cohort (
    cohort_id         uuid primary key,
    tenant_id         text not null,
    -- What all members have in common, beside the cursor.
    interval_seconds  integer not null,
    look_back_seconds integer not null,
    -- As in rule_state.
    cursor            text collate "C",
    next_run_at       timestamptz,
    claim_token       bigint,
    claimed_by        text,
    claimed_until     timestamptz,
    last_run_at       timestamptz,
    -- The replica that knows the members; others take the cohort when it is late.
    home              text,
    members           integer not null check (members >= 0),
    -- Grows whenever a rule joins or leaves.
    revision          bigint not null default 1,
    constraint members_have_run check (cursor is not null and next_run_at is not null and last_run_at is not null)
) with (fillfactor = 50);

alter table rule_state add column cohort_id uuid references cohort;

-- A member has no progress of its own, and nothing that went wrong.
alter table rule_state add constraint member_advances_with_cohort check (
    cohort_id is null
    or (cursor is null and next_run_at is null and claim_token is null and claimed_by is null and claimed_until is null and problem is null));

create index rule_state_of_cohort on rule_state (cohort_id) where cohort_id is not null;

-- How far each rule has come, whether alone or with others. Of a member, the
-- columns of rule_state are null where the cohort has one.
create view rule_progress as
select s.rule_id, s.armed_since_ns, s.former, s.swept_before_ns, s.problem, s.problem_at, s.cohort_id,
       coalesce(c.cursor, s.cursor) as cursor,
       coalesce(c.next_run_at, s.next_run_at) as next_run_at,
       coalesce(c.claim_token, s.claim_token) as claim_token,
       coalesce(c.claimed_by, s.claimed_by) as claimed_by,
       coalesce(c.claimed_until, s.claimed_until) as claimed_until,
       coalesce(c.last_run_at, s.last_run_at) as last_run_at
from rule_state s
left join cohort c using (cohort_id);

-- A member is judged by the definition that it joined with. Whoever changes a
-- rule has to let it leave first: a change that went past this would be judged
-- by its former condition, in silence.
-- +goose StatementBegin
create function member_stays_as_it_is() returns trigger language plpgsql as $$
begin
    if exists (select from rule_state where rule_id = old.rule_id and cohort_id is not null) then
        raise object_in_use using message = format('rule %s shares a cursor, and has to leave its cohort before it is changed', old.rule_id);
    end if;
    return new;
end
$$;
-- +goose StatementEnd

create trigger member_stays_as_it_is before update of version, enabled, deleted_at, scope, filter, fire_mode, interval_seconds, look_back_seconds
    on rule for each row execute function member_stays_as_it_is();
