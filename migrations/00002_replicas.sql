-- +goose Up

-- The processes that run, each with its last sign of life. A claim on a rule or
-- a notification names its replica, without a foreign key: claims are fenced by
-- their tokens, and a replica that cannot write its row works all the same.
-- There is no index on claimed_by: dead replicas are rare, and claiming must
-- stay cheap.
create table replica (
    replica_id text primary key,
    host       text not null,
    pid        integer not null,
    version    text not null,
    roles      text[] not null,
    started_at timestamptz not null default now(),
    beat_at    timestamptz not null default now()
) with (fillfactor = 50);
