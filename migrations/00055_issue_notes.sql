-- +goose Up

-- What people wrote about an issue, which is named as by the columns of its alerts. A note does not hang on these: where
-- retention deletes them all, it is there again when the issue is.
create table issue_note (
    tenant_id   text not null,
    note_id     uuid not null,
    application text not null,
    route       text not null,
    signature   text not null,
    -- As alerts name who acknowledged them.
    author      text not null,
    text        text not null check (text <> ''),
    written_at  timestamptz not null default now(),
    primary key (tenant_id, note_id)
);

-- Names are longer than an index holds.
create index issue_note_listed on issue_note (tenant_id, hashtext(application), hashtext(route), signature, written_at desc, note_id desc);

-- The audit log does not repeat the text, so that a deleted note is gone.
create trigger audit after insert or update or delete on issue_note for each row
    execute function audit_row('note', 'note_id', 'signature', 'text', '');
