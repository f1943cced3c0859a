-- +goose Up

-- How often operators were notified of a subject. The id of an alert about a rule, a
-- webhook or the source is derived from its subject and its number, so that one that is
-- raised again after a failover that lost it has the same id, and so have its messages.
create table incident_count (
    subject text primary key,
    raised  bigint not null
);

-- A UUID of version 8.
-- +goose StatementBegin
create function incident_id(subject text, number bigint) returns uuid language sql immutable as $$
    select overlay(overlay(left(encode(sha256(convert_to(number || ' ' || subject, 'UTF8')), 'hex'), 32) placing '8' from 13) placing '8' from 17)::uuid
$$;
-- +goose StatementEnd
