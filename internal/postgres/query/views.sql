-- name: ViewList :many
-- Returns a person's own views and the shared ones, by name.
select * from saved_view
where tenant_id = @tenant_id and (owner = @owner or shared)
order by lower(name), name, owner, view_id
limit @most;

-- name: ViewGet :one
-- Returns a view that a person can see.
select * from saved_view where tenant_id = @tenant_id and view_id = @view_id and (owner = @owner or shared);

-- name: ViewsCount :one
-- Returns how many views a person has and how many are shared, without the one of a name.
select count(*) filter (where owner = @owner::text) as own, count(*) filter (where shared) as shared
from saved_view
where tenant_id = @tenant_id and (owner, name) <> (@owner::text, @name::text);

-- name: ViewWrite :one
insert into saved_view (view_id, tenant_id, owner, name, search, shared)
values (@view_id, @tenant_id, @owner, @name, @search, @shared)
on conflict on constraint saved_view_named do update set search = excluded.search, shared = excluded.shared, updated_at = now()
returning *;

-- name: ViewDelete :execrows
delete from saved_view where tenant_id = @tenant_id and view_id = @view_id;
