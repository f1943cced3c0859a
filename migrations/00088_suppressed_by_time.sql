-- +goose Up

-- The digests of a silence that recurs read what a window suppressed, and not what all windows before it did: the
-- silence is locked meanwhile, and commits wait for it.
create index settlement_suppressed_at on settlement (silence_id, settled_at) where silence_id is not null;
drop index settlement_suppressed;
