-- +goose Up

-- Scope and filter of a rule, and of its former conditions, may exclude. A program that does
-- not know of exclusions reads past them, and would raise what the rule leaves out.
update schema_compatibility set least = 39;
