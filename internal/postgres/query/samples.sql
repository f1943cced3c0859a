-- name: SampleMissing :one
-- Returns whether the present minute has no sample yet.
select not exists (select from system_sample where at = date_trunc('minute', now())) as missing;

-- name: SampleInsert :execrows
insert into system_sample (at, lag_ms, partitions, partitions_held, replicas)
select date_trunc('minute', now()), sqlc.narg(lag_ms)::bigint, @partitions, @partitions_held,
       (select count(*) from replica where beat_at > now() - @dead_after::interval)
on conflict (at) do nothing;

-- name: SampleOutbox :exec
-- Samples the outbox. If it is very long, a part is counted and extrapolated. Messages that wait
-- for another message or for the end of quiet hours do not count.
with walked as materialized (
    select o.notification_id, o.webhook_id from outbox o where o.ready_at is not null limit @most
), scale as (
    select case when count(*) < @most then 1
           else greatest(1, pg_stat_get_live_tuples('outbox'::regclass)::double precision / count(*)) end as factor
    from walked
)
insert into outbox_sample (tenant_id, at, messages, oldest_seconds)
select n.tenant_id, date_trunc('minute', now()), (count(*) * (select factor from scale))::bigint,
       greatest(0, extract(epoch from now() - min(n.created_at)))::double precision
from walked join notification n using (notification_id)
group by n.tenant_id
on conflict (tenant_id, at) do nothing;

-- name: SampleDelete :exec
delete from system_sample where at < now() - @keep::interval;

-- name: SampleDeleteOutbox :exec
delete from outbox_sample where at < now() - @keep::interval;

-- name: SampleHistory :many
-- Returns the worst values of each step of the last 24 hours. A step without a sample is left out.
with day as (
    select date_bin(@step::interval, now(), 'epoch') - interval '24 hours' + @step::interval as since
)
select day.since::timestamptz as since,
       floor(extract(epoch from s.at - day.since) / extract(epoch from @step::interval))::integer as step,
       coalesce(max(s.lag_ms), -1)::bigint as lag_ms, min(s.replicas)::integer as replicas,
       max(s.partitions)::integer as partitions, min(s.partitions_held)::integer as partitions_held,
       max(coalesce(o.messages, 0))::bigint as messages, max(coalesce(o.oldest_seconds, 0))::double precision as oldest_seconds
from day
join system_sample s on s.at >= day.since
left join outbox_sample o on o.tenant_id = @tenant_id and o.at = s.at
group by 1, 2
order by 2;
