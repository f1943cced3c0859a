-- name: WebhookList :many
select * from webhook w
where w.tenant_id = @tenant_id and w.deleted_at is null
  and (sqlc.narg(after_name)::text is null
       or (w.name collate "C", w.webhook_id) > (sqlc.narg(after_name)::text collate "C", @after_id::uuid))
order by w.name collate "C", w.webhook_id
limit @most::int;

-- name: WebhookGet :one
select * from webhook where tenant_id = @tenant_id and webhook_id = @webhook_id and deleted_at is null;

-- name: WebhookNames :many
select webhook_id, name, enabled, preset, quiet_hours from webhook
where tenant_id = @tenant_id and deleted_at is null
order by name collate "C";

-- name: WebhookInsert :one
insert into webhook (webhook_id, tenant_id, name, kind, secrets, url_host, signed, body_template, enabled, operators,
                     timeout_ms, max_concurrent, rate_per_second, digest_above, slack_channel, slack_threads, events, event_age_seconds, quiet_hours, preset)
values (@webhook_id, @tenant_id, @name, @kind, @secrets, @url_host, @signed, @body_template, @enabled, @operators,
        @timeout_ms, @max_concurrent, @rate_per_second, @digest_above, @slack_channel, @slack_threads, @events, @event_age_seconds, @quiet_hours, @preset)
returning *;

-- name: WebhookLock :one
select webhook_id from webhook
where tenant_id = @tenant_id and webhook_id = @webhook_id and deleted_at is null
for update;

-- name: WebhookRules :many
select r.name from rule_webhook rw
join rule r using (rule_id)
where rw.webhook_id = @webhook_id and r.deleted_at is null
order by r.name
limit 10;

-- name: WebhookDelete :exec
-- Keeps the row for the record, without its secrets.
update webhook
set deleted_at = now(), enabled = false, secrets = '', version = version + 1
where webhook_id = @webhook_id;

-- name: OutboxAbandon :exec
-- Discards the messages that wait for a webhook that is being deleted. Attempts under way are
-- recorded; their outcomes follow. All rows in the queue have a ready_at, by which they are
-- indexed; the other rows wait for one of these.
with gone as (
    delete from outbox o where o.webhook_id = @webhook_id and (o.ready_at >= '-infinity' or o.ready_at is null)
    returning o.notification_id, o.attempts, o.claim_token, o.claimed_by, o.begun_at
), unknown as (
    insert into attempt (notification_id, attempt, claim_token, replica, started_at)
    select t.notification_id, t.attempts, t.claim_token, coalesce(t.claimed_by, ''), t.begun_at
    from gone t
    where t.begun_at is not null and t.claim_token is not null
    on conflict do nothing
)
insert into settlement (notification_id, tenant_id, status, discarded_by)
select n.notification_id, n.tenant_id, 'DISCARDED', @discarded_by::text from gone join notification n using (notification_id);

-- name: DeadLettersAbandon :exec
-- Discards the refused and exhausted messages of a webhook that is being deleted: nobody can send
-- them again.
update settlement s
set status = 'DISCARDED', discarded_by = @discarded_by::text
from notification n
where n.notification_id = s.notification_id and n.webhook_id = @webhook_id and s.status in ('FAILED', 'EXHAUSTED');

-- name: SecretKeys :many
-- Returns which keys secrets are sealed with, and how many secrets each key seals.
select substring(secrets from 1 for 5)::bytea as head, count(*) as secrets
from webhook where secrets <> '' group by 1 order by 1;

-- name: SecretsBehind :many
-- Returns secrets that are sealed with another key than that of the given head, after an id.
select webhook_id, secrets from webhook
where secrets <> '' and substring(secrets from 1 for 5) <> @head::bytea and webhook_id > @after_id
order by webhook_id
limit 100;

-- name: SecretReplace :execrows
-- Replaces secrets by the same ones sealed with another key, unless somebody has changed them
-- meanwhile.
update webhook set secrets = @sealed where webhook_id = @webhook_id and secrets = @was;
