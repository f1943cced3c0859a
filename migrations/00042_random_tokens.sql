-- +goose Up

-- Tokens of claims are random: a sequence that a failover takes back gives the same one
-- twice, and who claimed before the failover would pass for who claims after it.
-- +goose StatementBegin
create function random_token() returns bigint language sql volatile parallel safe
as $$ select ('x' || right(replace(gen_random_uuid()::text, '-', ''), 16))::bit(64)::bigint & 9223372036854775807 $$;
-- +goose StatementEnd
