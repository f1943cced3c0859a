-- +goose Up

-- The recipients that have a message already, one a line, where it has several and not all took
-- it: the next attempt is for the others. Nearly always empty.
alter table outbox add column reached text not null default '';
