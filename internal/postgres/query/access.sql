-- name: SignInFailureMake :exec
-- Makes a row for each subject, in a fixed order.
insert into sign_in_failure (subject)
select s from unnest(@subjects::bytea[]) as s order by s
on conflict (subject) do nothing;

-- name: SignInFailureLock :many
select f.subject, f.failures, f.last_at, clock_timestamp()::timestamptz as at
from sign_in_failure f where f.subject = any(@subjects::bytea[]) order by f.subject for update;

-- name: SignInFailureSet :exec
update sign_in_failure set failures = @failures, last_at = clock_timestamp() where subject = @subject;

-- name: SignInFailureForget :exec
delete from sign_in_failure where subject = @subject;

-- name: SignInFailureTakeBack :exec
update sign_in_failure set failures = greatest(0, failures - 1) where subject = @subject;

-- name: AccountByEmail :one
select * from account where lower(email) = lower(@email::text);

-- name: AccountLock :one
select * from account where account_id = @account_id for no key update;

-- name: AccountSignedIn :exec
update account set signed_in_at = now(), password_hash = coalesce(sqlc.narg(rehashed)::text, password_hash) where account_id = @account_id;

-- name: SessionInsert :one
insert into session (secret_hash, session_id, account_id, address, expires_at)
values (@secret_hash, @session_id, @account_id, @address, now() + @lifetime::interval)
returning expires_at;

-- name: SessionGet :one
select sqlc.embed(s), sqlc.embed(a), (s.seen_at < now() - interval '1 minute')::boolean as stale
from session s join account a using (account_id)
where s.secret_hash = @secret_hash and s.expires_at > now() and s.seen_at > now() - @idle::interval and not a.disabled;

-- name: SessionSeen :exec
update session set seen_at = now() where secret_hash = @secret_hash and seen_at < now() - interval '1 minute';

-- name: SessionClose :one
delete from session where secret_hash = @secret_hash
returning session_id;

-- name: SessionsEnd :exec
delete from session where account_id = @account_id;

-- name: LinksEnd :exec
delete from sign_in_link where account_id = @account_id;

-- name: LinkInsert :one
insert into sign_in_link (secret_hash, account_id, expires_at) values (@secret_hash, @account_id, now() + @lifetime::interval)
returning expires_at;

-- name: LinkRedeem :one
delete from sign_in_link where secret_hash = @secret_hash and expires_at > now()
returning account_id;

-- name: TokenGetBySecret :one
select sqlc.embed(t), (t.used_at is null or t.used_at < now() - interval '1 minute')::boolean as stale
from api_token t
where t.secret_hash = @secret_hash and (t.expires_at is null or t.expires_at > now());

-- name: TokenUsed :exec
update api_token set used_at = now()
where token_id = @token_id and (used_at is null or used_at < now() - interval '1 minute');

-- name: SetUpLock :exec
-- Lets only one transaction at a time check whether there is an account or an administrator, and
-- make the first one.
select pg_advisory_xact_lock(hashtext('tocsin first account'));

-- name: AccountsExist :one
select exists (select from account);

-- name: AdministratorExists :one
select exists (select from account where role = 'admin' and not disabled);

-- name: SetUpCodeInsert :exec
insert into set_up_code (secret_hash, expires_at) values (@secret_hash, now() + interval '24 hours');

-- name: SetUpCodeValid :one
select exists (select from set_up_code where secret_hash = @secret_hash and expires_at > now());

-- name: SetUpCodesEnd :exec
delete from set_up_code;

-- name: AccountInsert :one
insert into account (account_id, tenant_id, email, name, role, password_hash, password_changed_at, issuer, subject)
values (@account_id, @tenant_id, @email, @name, @role, sqlc.narg(password_hash),
        case when sqlc.narg(password_hash)::text is not null then now() end, sqlc.narg(issuer), sqlc.narg(subject))
returning *;

-- name: AccountSetPassword :execrows
update account set password_hash = @password_hash, password_changed_at = now(), version = version + 1, updated_at = now()
where account_id = @account_id;

-- name: AccessPurge :exec
-- Deletes what has expired. Nothing else deletes or needs these rows, so one statement may delete
-- all of them.
with sessions as (
    delete from session where expires_at <= now() or seen_at <= now() - @idle::interval
), links as (
    delete from sign_in_link where expires_at <= now()
), codes as (
    delete from set_up_code where expires_at <= now() or exists (select from account where role = 'admin' and not disabled)
)
delete from sign_in_failure where last_at <= now() - interval '24 hours';

-- name: AuditPurge :exec
delete from audit where at <= now() - @retention::interval;

-- name: AccountList :many
select * from account a
where a.tenant_id = @tenant_id
  and (sqlc.narg(after_email)::text is null
       or (a.email collate "C", a.account_id) > (sqlc.narg(after_email)::text collate "C", @after_id::uuid))
order by a.email collate "C", a.account_id
limit @most::int;

-- name: AccountGet :one
select * from account where tenant_id = @tenant_id and account_id = @account_id;

-- name: AccountGetForUpdate :one
select * from account where tenant_id = @tenant_id and account_id = @account_id for update;

-- name: AdminsLock :many
-- Locks all administrators of a tenant, in a fixed order. Otherwise two transactions could each
-- remove one of the last two, and each believe that the other remains.
select account_id from account
where tenant_id = @tenant_id and role = 'admin' and not disabled
order by account_id
for update;

-- name: AccountUpdate :one
update account set name = @name, role = @role, disabled = @disabled, version = version + 1, updated_at = now()
where account_id = @account_id
returning *;

-- name: AccountDelete :exec
delete from account where account_id = @account_id;

-- name: AccountByIdentity :one
select * from account where issuer = @issuer::text and subject = @subject::text;

-- name: TokenList :many
select * from api_token t
where t.tenant_id = @tenant_id
  and (sqlc.narg(after_name)::text is null
       or (t.name collate "C", t.token_id) > (sqlc.narg(after_name)::text collate "C", @after_id::uuid))
order by t.name collate "C", t.token_id
limit @most::int;

-- name: TokenInsert :one
insert into api_token (token_id, tenant_id, name, role, secret_hash, hint, created_by, expires_at)
values (@token_id, @tenant_id, @name, @role, @secret_hash, @hint, @created_by, sqlc.narg(expires_at))
returning *;

-- name: TokenDelete :execrows
delete from api_token where tenant_id = @tenant_id and token_id = @token_id;

-- name: AccountsAll :many
select * from account order by tenant_id, email collate "C";
