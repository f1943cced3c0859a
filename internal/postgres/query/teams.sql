-- name: TeamListGet :one
select * from team_list where tenant_id = @tenant_id;

-- name: TeamListLock :exec
-- Lets one transaction at a time replace the teams of a tenant, even if there are none yet.
select pg_advisory_xact_lock(hashtext('tocsin teams'), hashtext(@tenant_id::text));

-- name: TeamListWrite :exec
insert into team_list as l (tenant_id, teams, version, updated_by) values (@tenant_id, @teams, @version, @actor)
on conflict (tenant_id) do update
set teams = excluded.teams, version = excluded.version, updated_at = clock_timestamp(), updated_by = excluded.updated_by;

-- name: TeamsAround :one
-- Returns the teams of a tenant, and the groups of a user; no groups if there is no such user.
select l.teams, coalesce((select a.groups from account a where a.tenant_id = l.tenant_id and lower(a.email) = lower(@email::text)), '{}')::text[] as groups
from team_list l where l.tenant_id = @tenant_id;

-- name: AccountSetGroups :exec
update account set groups = @groups::text[] where account_id = @account_id and groups <> @groups::text[];
