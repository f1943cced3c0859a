-- +goose Up

-- A round compares every rule, in one pass or in several. rules and missing are
-- those of the last whole round; while one is under way, missing is at least
-- what that has found.
alter table reconciliation
    add column round_rules    bigint not null default 0,
    add column round_missing  bigint not null default 0,
    -- When the round under way began; null between rounds.
    add column round_began_at timestamptz,
    -- Every rule has been compared since then; null before the first whole round.
    add column whole_since    timestamptz;
