-- name: SlackMessageAlerts :exec
-- Locks the alerts of messages that are about to be entered, in the order of their ids. The lock
-- orders the entry against a change, an assignment or a snooze of the alert: one of both sees the
-- other. It is a separate statement, so that the next one sees what was committed meanwhile.
select from alert where alert_id = any(@alert_ids::uuid[]) order by alert_id for share;

-- name: SlackMessageAdd :exec
-- Stores the channel and ts of a message, under the lock on its alert. It requests an update if the
-- alert is not in the state that the message shows. It also does so if the alert is assigned or
-- snoozed, because a message does not show this when it is posted.
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
-- Returns the webhook that posted a message. A tenant may have several webhooks of one Slack app.
select m.webhook_id from slack_message m
join webhook w on w.webhook_id = m.webhook_id
where w.tenant_id = @tenant_id and w.deleted_at is null and m.alert_id = @alert_id and m.channel = @channel and m.ts = @ts
limit 1;

-- name: SlackUpdateTrim :execrows
-- Deletes the pending updates of each webhook, except the newest and those being made. An update that
-- was requested again meanwhile has another generation, and is kept.
delete from slack_update u
using (
    select c.message_id
    from (
        select s.message_id, s.generation, row_number() over (partition by s.webhook_id order by s.generation desc) as place
        from slack_update s
    ) c
    join slack_update k using (message_id, generation)
    where c.place > @most::int
    for update of k skip locked
) old
where u.message_id = old.message_id and (u.claim_token is null or u.due_at <= now());

-- name: SlackUpdateWebhooks :many
-- Returns the webhooks whose messages can be changed, and whether an update is due for them and may
-- be made now.
select w.webhook_id,
       ((w.held_until is null or w.held_until <= now())
        and (w.updates_held_until is null or w.updates_held_until <= now())
        and exists (select from slack_update u where u.webhook_id = w.webhook_id and u.due_at <= now()))::boolean as due
from webhook w
where w.enabled and w.slack_channel <> '';

-- name: SlackUpdateClaim :many
-- Takes the newest due update of each webhook. What it shows is read afterwards, by SlackUpdateRead:
-- this statement may lock an update that was requested again after its snapshot.
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
)
update slack_update u
set claim_token = random_token(), due_at = now() + @lease::interval
from due
where u.message_id = due.message_id
returning u.message_id;

-- name: SlackUpdateRead :many
-- Returns claimed updates with the present state of their alerts. A change that is not yet visible
-- waits for the claim, and gives the update another generation.
select u.message_id, u.generation, u.attempts, u.claim_token::bigint as claim_token,
       m.channel, m.ts, m.reason, sqlc.embed(a), r.name as rule_name, r.about as rule_about, sqlc.embed(w),
       h.assignee, h.assigned_by, h.assigned_at, z.until as snoozed_until, z.snoozed_by, z.snoozed_at
from slack_update u
join slack_message m using (message_id)
join alert a on a.alert_id = m.alert_id
join rule r on r.rule_id = a.rule_id
join webhook w on w.webhook_id = m.webhook_id
left join alert_assignment h on h.alert_id = m.alert_id
left join alert_snooze z on z.alert_id = m.alert_id and z.until > now()
where u.message_id = any(@message_ids::bigint[]);

-- name: SlackUpdateEnd :one
-- Ends an update under its claim. If the alert has changed meanwhile, the update is due again at
-- once. If another replica has taken the claim, both updates may have arrived in either order, and
-- the caller requests another one.
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
-- Makes an update due again after a pause. If the alert has changed meanwhile, it is due at once.
update slack_update u
set due_at = case when u.generation = @generation then now() + @wait::interval else now() end,
    attempts = case when u.generation = @generation then u.attempts + @counts::int else 0 end,
    claim_token = null
where u.message_id = @message_id and u.claim_token = @token::bigint;

-- name: SlackUpdatesHold :exec
update webhook
set updates_held_until = greatest(updates_held_until, now() + @hold::interval)
where webhook_id = @webhook_id;

-- name: SlackWebhook :one
-- Finds a webhook before its tenant is known. The caller only reads what proves a request.
select * from webhook where webhook_id = @webhook_id and deleted_at is null and slack_channel <> '';

-- name: SlackPerson :one
-- Returns the user of a tenant with an e-mail address.
select email, role, disabled from account where tenant_id = @tenant_id and lower(email) = lower(@email::text);

-- name: SlackUpdateAbandon :exec
delete from slack_update u where u.webhook_id = @webhook_id;

-- name: SlackThreadsBegin :exec
-- Makes messages begin the threads of their issues: messages about the same issue within a day are
-- posted there. If two messages are about one issue, the first begins the thread. A thread that was
-- begun meanwhile remains. All transactions go through issues in the same order.
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
-- Forgets a thread into which no message can be posted.
delete from slack_thread t where t.webhook_id = @webhook_id and t.ts = @ts;
