-- +goose Up

-- Window rules also group by an attribute, of which group_attribute holds the key. A program
-- that does not know of that counts all groups as one.
alter table rule
    add column group_attribute text not null default '',
    drop constraint rule_group_by_check,
    add constraint rule_group_by_check check (group_by in ('', 'ROUTE', 'APPLICATION', 'ENVIRONMENT', 'ERROR_TYPE', 'ATTRIBUTE')),
    add constraint group_is_complete check ((group_by = 'ATTRIBUTE') = (group_attribute <> ''));
update schema_compatibility set least = 66;
