-- +goose Up

-- A silence may ask for digests of what it suppressed. The digests that are due at digest_at list what was
-- suppressed from digest_from on and before digest_at. Without digest_at, none are due.
alter table silence
    add column digest      boolean not null default false,
    add column digest_from timestamptz,
    add column digest_at   timestamptz,
    add constraint silence_digest_due check (digest_at is null or digest and digest_from is not null);

create index silence_digest_due on silence (digest_at, silence_id) where digest_at is not null;

-- When digests are due is no change that people make.
drop trigger audit on silence;
create trigger audit after insert or update or delete on silence for each row
    execute function audit_row('silence', 'silence_id', 'name', '', 'digest_from,digest_at');

-- Of a digest that a silence asked for: the silence, and the time range.
alter table digest
    add column silence_id     uuid,
    add column silenced_from  timestamptz,
    add column silenced_until timestamptz;

create index digest_of_silence on digest (silence_id) where silence_id is not null;

-- Which digest lists a suppressed message. The message keeps its own settlement. The primary key holds
-- each to one digest.
create table digest_listing (
    notification_id uuid primary key references notification on delete cascade,
    digest_id       uuid not null references digest on delete cascade
);

create index digest_listing_of_digest on digest_listing (digest_id);

-- What a digest is about: the messages that it replaces, or those that it lists.
create view digest_content as
select digest_id, notification_id from digest_member
union all
select digest_id, notification_id from digest_listing;

-- A program before this one would suppress messages without a lock on the silence, beside its digest.
update schema_compatibility set least = 86;
