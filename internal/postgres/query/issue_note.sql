-- name: IssueNoteInsert :one
-- Writes a note on an issue that has alerts, once for each id.
insert into issue_note (tenant_id, note_id, application, route, signature, author, text)
select @tenant_id, @note_id, @application, @route, @signature, @author, @text
where exists (
    select from alert a
    where a.tenant_id = @tenant_id and a.state <> 'PENDING' and a.signature = @signature and a.execution_id is not null
      and hashtext(a.application) = hashtext(@application::text) and a.application = @application
      and hashtext(a.route) = hashtext(@route::text) and a.route = @route
)
on conflict (tenant_id, note_id) do nothing
returning written_at;

-- name: IssueNoteGet :one
select * from issue_note where tenant_id = @tenant_id and note_id = @note_id;

-- name: IssueNoteDelete :execrows
delete from issue_note where tenant_id = @tenant_id and note_id = @note_id;

-- name: IssueNoteList :many
-- Returns the notes of an issue before a place in the list, newest first.
select note_id, author, text, written_at
from issue_note
where tenant_id = @tenant_id
  and hashtext(application) = hashtext(@application::text) and application = @application
  and hashtext(route) = hashtext(@route::text) and route = @route
  and signature = @signature
  and (sqlc.narg(before_at)::timestamptz is null or (written_at, note_id) < (sqlc.narg(before_at), @before_id::uuid))
order by written_at desc, note_id desc
limit @most;
