-- +goose Up

-- The start times, from and to exclusive, of the exchanges about which the database refused the alerts of a
-- rule that fails. The rule has recovered once it gets past them.
alter table rule_backfill add column refused_from_ns bigint, add column refused_to_ns bigint;
