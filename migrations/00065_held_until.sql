-- +goose Up

-- Until when a window alert that a person resolved holds its group, where the person said so;
-- otherwise until the value has been back once. A program before this one goes by the value alone.
alter table alert add column held_until timestamptz;
