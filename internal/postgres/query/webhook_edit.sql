-- name: WebhookToEdit :one
-- Returns a webhook and keeps others from editing it.
select * from webhook
where tenant_id = @tenant_id and webhook_id = @webhook_id and deleted_at is null
for update;

-- name: WebhookUpdate :one
-- Enabling a webhook clears the reason why it was disabled. If a person has entered something else for the receiver, the
-- bodies of former versions are not sent any more.
update webhook
set name = @name, secrets = @secrets, url_host = @url_host, signed = @signed, body_template = @body_template,
    operators = @operators, timeout_ms = @timeout_ms, max_concurrent = @max_concurrent, rate_per_second = @rate_per_second, digest_above = @digest_above, slack_channel = @slack_channel, slack_threads = @slack_threads,
    events = @events, event_age_seconds = @event_age_seconds, quiet_hours = @quiet_hours,
    former_secret_until = sqlc.narg(former_secret_until)::timestamptz,
    disabled_reason = case when @enabled::boolean then '' else disabled_reason end,
    held_until = case when @release::boolean then null else held_until end,
    enabled = @enabled::boolean,
    inputs_version = case when @readdressed::boolean then version + 1 else inputs_version end,
    version = version + 1, updated_at = now()
where webhook_id = @webhook_id
returning *;

-- name: WebhookReferencesForget :exec
-- Forgets the names by which the receiver of a webhook knows alerts: another receiver does not know
-- them.
delete from receiver_reference where webhook_id = @webhook_id;

-- name: WebhookClock :one
select now()::timestamptz;
