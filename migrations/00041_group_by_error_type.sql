-- +goose Up

-- Window rules also group by error type. A program that does not know of that counts all
-- groups as one.
alter table rule
    drop constraint rule_group_by_check,
    add constraint rule_group_by_check check (group_by in ('', 'ROUTE', 'APPLICATION', 'ENVIRONMENT', 'ERROR_TYPE'));
update schema_compatibility set least = 41;
