-- +goose Up

-- Which receiver, of those that presets describe, a webhook of the kind generic is for; empty is
-- none. What a person entered for it is sealed with the other secrets.
alter table webhook
    add column preset text not null default '',
    add constraint webhook_preset check (preset = '' or kind = 'generic');
