-- name: IssueNoteInsert :one
-- Writes a note on an issue that has alerts, once for each id.
insert into issue_note (tenant_id, note_id, application, route, signature, author, text)
select @tenant_id, @note_id, @application::text, @route::text, @signature::text, @author, @text
where exists (
    select from alert a
    where a.tenant_id = @tenant_id and a.state <> 'PENDING' and a.signature = @signature::text and a.execution_id is not null
      and hashtext(a.application) = hashtext(@application::text) and a.application = @application
      and hashtext(a.route) = hashtext(@route::text) and a.route = @route
)
on conflict (tenant_id, note_id) do nothing
returning written_at;

-- name: RuleNoteInsert :one
-- Writes a note on a group of a rule, once for each id. A deletion of the rule waits, and deletes the
-- note.
insert into issue_note (tenant_id, note_id, rule_id, group_key, author, text)
select r.tenant_id, @note_id, r.rule_id, @group_key::text, @author, @text
from rule r
where r.tenant_id = @tenant_id and r.rule_id = @rule_id and r.deleted_at is null
for share
on conflict (tenant_id, note_id) do nothing
returning written_at;

-- name: IssueNoteGet :one
select * from issue_note where tenant_id = @tenant_id and note_id = @note_id;

-- name: IssueNoteDelete :execrows
delete from issue_note where tenant_id = @tenant_id and note_id = @note_id;

-- name: IssueNoteList :many
-- Returns the notes of an issue before a place in the list, newest first.
select * from issue_note
where tenant_id = @tenant_id
  and hashtext(application) = hashtext(@application::text) and application = @application
  and hashtext(route) = hashtext(@route::text) and route = @route
  and signature = @signature::text
  and (sqlc.narg(before_at)::timestamptz is null or (written_at, note_id) < (sqlc.narg(before_at), @before_id::uuid))
order by written_at desc, note_id desc
limit @most;

-- name: RuleNoteList :many
-- Returns the notes of a group of a rule, as IssueNoteList does.
select * from issue_note
where tenant_id = @tenant_id and rule_id = @rule_id::uuid and group_key = @group_key::text
  and (sqlc.narg(before_at)::timestamptz is null or (written_at, note_id) < (sqlc.narg(before_at), @before_id::uuid))
order by written_at desc, note_id desc
limit @most;
