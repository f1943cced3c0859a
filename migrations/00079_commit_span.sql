-- +goose Up

-- The ids of the trace and the span of the commit that wrote a notification, for the spans of its
-- attempts. Null unless the notification is traced.
alter table notification add column commit_span bytea;
