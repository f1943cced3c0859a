-- +goose Up

-- A digest of which alerts an action was asked for, so that its id is not taken for that
-- of another one; null of an action that was entered before, or by an older replica.
alter table alert_action add column selection bytea;
