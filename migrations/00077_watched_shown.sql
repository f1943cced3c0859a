-- +goose Up

-- How many exchanges were shown at the last watch: a process that takes over the partition
-- knows by it whether the server that answers it is behind. A program that does not know of
-- it leaves it as it is; absence then waits for up to ten minutes after the next takeover.
alter table checkpoint add column watched_shown bigint not null default 0;
