-- +goose Up

-- How the system was in each minute of the last day, written by whichever replica comes
-- first. A minute without a row is one in which nothing ran.
create table system_sample (
    at              timestamptz primary key,
    -- How far the partition was behind that was the farthest; null where none had a cursor.
    lag_ms          bigint,
    partitions      integer not null,
    partitions_held integer not null,
    replicas        integer not null
);

-- What was owed to a tenant then; a tenant without a row was owed nothing.
create table outbox_sample (
    tenant_id      text not null,
    at             timestamptz not null,
    messages       bigint not null,
    oldest_seconds double precision not null,
    primary key (tenant_id, at)
);

create index outbox_sample_by_age on outbox_sample (at);
