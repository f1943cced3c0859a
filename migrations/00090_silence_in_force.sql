-- +goose Up

-- Since when the silence has been in force in the window that ends at digest_at, if an edit within that window has
-- changed the definition that says so. Without it, or if it is before digest_from, the definition does.
alter table silence add column digest_since timestamptz;

drop trigger audit on silence;
create trigger audit after insert or update or delete on silence for each row
    execute function audit_row('silence', 'silence_id', 'name', '', 'digest_from,digest_at,digest_since');
