-- +goose Up

-- The least schema that a program has to know to work with this one. A step beside
-- which the programs before it cannot work raises it to its own version; all others
-- leave it, so that such a program may start while it is being replaced, and
-- again after it was. Programs that know less than 23 do not ask.
create table schema_compatibility (
    only_row boolean primary key default true check (only_row),
    least    bigint not null
);
insert into schema_compatibility (least) values (23);
