-- +goose Up

-- Messages that were refused or exhausted, until they are retried or discarded: few, and
-- counted for the metrics.
create index settlement_dead_letter on settlement (settled_at) where status in ('FAILED', 'EXHAUSTED');
