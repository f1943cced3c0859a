-- name: SlackMessageAlerts :exec
-- Holds the alerts of messages that are about to be entered, in the order of their ids. That orders the entry
-- against whoever changes an alert, assigns or snoozes it: one of both sees the other. It is a statement of its own,
-- so that the one after it sees what was committed meanwhile.
select from alert where alert_id = any(@alert_ids::uuid[]) order by alert_id for share;

-- name: SlackMessageAdd :exec
-- Enters the channel and ts of a message, under the lock on its alert, and requests an update where
-- the alert is not, or no longer, in the state that the message shows, and where somebody handles it
-- or it is snoozed, which a message does not show when it is posted.
with state as materialized (
    select a.alert_id, a.state,
           a.state <> 'RESOLVED' and (exists (select from alert_assignment h where h.alert_id = a.alert_id)
                                      or exists (select from alert_snooze z where z.alert_id = a.alert_id and z.until > now())) as handled
    from alert a where a.alert_id = @alert_id::uuid
), entered as (
    insert into slack_message (webhook_id, alert_id, notification_id, reason, channel, ts)
    select @webhook_id::uuid, state.alert_id, sqlc.narg(notification_id)::uuid, @reason::text, @channel::text, @ts::text
    from state
    on conflict (webhook_id, channel, ts) do update set reason = slack_message.reason
    returning message_id, webhook_id
)
insert into slack_update (message_id, webhook_id)
select entered.message_id, entered.webhook_id from entered, state
where state.state <> @shown::text or state.handled
on conflict (message_id) do update
set generation = excluded.generation, attempts = 0,
    due_at = case when slack_update.claim_token is null then now() else slack_update.due_at end;

-- name: SlackMessageFind :one
-- The webhook that posted a message; a tenant may have several webhooks of one
-- Slack app.
select m.webhook_id from slack_message m
join webhook w on w.webhook_id = m.webhook_id
where w.tenant_id = @tenant_id and w.deleted_at is null and m.alert_id = @alert_id and m.channel = @channel and m.ts = @ts
limit 1;

-- name: SlackUpdateTrim :execrows
-- Deletes the pending updates of each webhook, except the newest and those being made.
delete from slack_update u
using (
    select c.message_id
    from (
        select s.message_id, row_number() over (partition by s.webhook_id order by s.generation desc) as place
        from slack_update s
    ) c
    join slack_update k using (message_id)
    where c.place > @most::int
    for update of k skip locked
) old
where u.message_id = old.message_id and (u.claim_token is null or u.due_at <= now());

-- name: SlackUpdateWebhooks :many
-- The webhooks whose messages can be changed, and whether an update is due for
-- them that may be made now.
select w.webhook_id,
       ((w.held_until is null or w.held_until <= now())
        and (w.updates_held_until is null or w.updates_held_until <= now())
        and exists (select from slack_update u where u.webhook_id = w.webhook_id and u.due_at <= now()))::boolean as due
from webhook w
where w.enabled and w.slack_channel <> '';

-- name: SlackUpdateClaim :many
-- Takes the newest due update of each webhook.
with due as (
    select c.message_id
    from unnest(@webhook_ids::uuid[]) as room(webhook_id)
    cross join lateral (
        select u.message_id
        from slack_update u
        where u.webhook_id = room.webhook_id and u.due_at <= now()
        order by u.generation desc
        limit 1
        for update skip locked
    ) c
), claimed as (
    update slack_update u
    set claim_token = random_token(), due_at = now() + @lease::interval
    from due
    where u.message_id = due.message_id
    returning u.message_id, u.generation, u.attempts, u.claim_token
)
select c.message_id, c.generation, c.attempts, c.claim_token::bigint as claim_token,
       m.channel, m.ts, m.reason, sqlc.embed(a), r.name as rule_name, r.about as rule_about, sqlc.embed(w),
       h.assignee, h.assigned_by, h.assigned_at, z.until as snoozed_until, z.snoozed_by
from claimed c
join slack_message m using (message_id)
join alert a on a.alert_id = m.alert_id
join rule r on r.rule_id = a.rule_id
join webhook w on w.webhook_id = m.webhook_id
left join alert_assignment h on h.alert_id = m.alert_id
left join alert_snooze z on z.alert_id = m.alert_id and z.until > now();

-- name: SlackUpdateEnd :one
-- Ends an update under its claim. One whose alert has changed meanwhile is due
-- at once. Where the claim has passed to somebody else, the two may have arrived
-- in either order, and the caller requests another one.
with gone as (
    delete from slack_update u
    where u.message_id = @message_id and u.claim_token = @token::bigint and u.generation = @generation
    returning 1
), again as (
    update slack_update u
    set due_at = now(), claim_token = null, attempts = 0
    where u.message_id = @message_id and u.claim_token = @token::bigint and u.generation <> @generation
    returning 1
)
select (exists (select from gone) or exists (select from again))::boolean as own;

-- name: SlackUpdateRequest :exec
insert into slack_update (message_id, webhook_id)
select m.message_id, m.webhook_id from slack_message m where m.message_id = @message_id
on conflict (message_id) do update set generation = excluded.generation, attempts = 0;

-- name: SlackUpdateRetry :execrows
update slack_update u
set due_at = now() + @wait::interval, attempts = u.attempts + @counts::int, claim_token = null
where u.message_id = @message_id and u.claim_token = @token::bigint;

-- name: SlackUpdatesHold :exec
update webhook
set updates_held_until = greatest(updates_held_until, now() + @hold::interval)
where webhook_id = @webhook_id;

-- name: SlackWebhook :one
-- Finds a webhook before it is known whose it is. Only what proves a request is
-- read of it then.
select * from webhook where webhook_id = @webhook_id and deleted_at is null and slack_channel <> '';

-- name: SlackPerson :one
-- The user of a tenant who has an e-mail address.
select email, role, disabled from account where tenant_id = @tenant_id and lower(email) = lower(@email::text);

-- name: SlackUpdateAbandon :exec
delete from slack_update u where u.webhook_id = @webhook_id;

-- name: SlackThreadsBegin :exec
-- Has the messages of issues that follow within a day posted into the threads of these ones. Of two
-- about one issue the first begins its thread, and where somebody has begun one meanwhile, that one
-- stays. Everybody goes through issues in one order.
insert into slack_thread (webhook_id, issue, message_id, channel, ts)
select distinct on (m.webhook_id, i.issue) m.webhook_id, i.issue, m.message_id, w.slack_channel, m.ts
from (select unnest(@webhook_ids::uuid[]) as webhook_id, unnest(@channels::text[]) as channel, unnest(@ts::text[]) as ts) b
join slack_message m on m.webhook_id = b.webhook_id and m.channel = b.channel and m.ts = b.ts
join alert a using (alert_id)
join webhook w on w.webhook_id = m.webhook_id
cross join lateral (select md5(concat_ws(E'\x1f', a.application, a.route, a.signature))::uuid as issue) i
where w.slack_threads and a.execution_id is not null
order by m.webhook_id, i.issue, m.message_id
on conflict (webhook_id, issue) do update
set message_id = excluded.message_id, channel = excluded.channel, ts = excluded.ts, begun_at = excluded.begun_at
where slack_thread.begun_at <= now() - interval '1 day' or slack_thread.channel <> excluded.channel;

-- name: SlackThreadEnd :exec
-- Forgets a thread into which nothing can be posted.
delete from slack_thread t where t.webhook_id = @webhook_id and t.ts = @ts;
