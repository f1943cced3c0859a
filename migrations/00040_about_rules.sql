-- +goose Up

-- What a rule tells those who handle its alerts: labels, owner, the address of a runbook, a note.
alter table rule add column about jsonb not null default '{}';
