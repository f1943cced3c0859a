-- +goose Up

-- Which action an alert was changed by last: lists of alerts show what their reader can undo.
create index alert_action_change on alert_action (tenant_id, change);
