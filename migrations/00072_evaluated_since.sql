-- +goose Up

-- Since when a window rule has been evaluated without a pause. What its windows held before, nobody
-- looked at, so that no alert is missing of it. Null where nobody knows; a program before this one
-- leaves it as it is.
alter table rule_state add column evaluated_since timestamptz;
