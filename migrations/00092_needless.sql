-- +goose Up

-- Whether a message is of no use to its receiver any more, unless a person sends it again: an escalation of an alert that
-- was acknowledged or resolved so long ago that it cannot be undone; and what happened to an alert of which the webhook
-- was not told that it fires, because the messages that would have said so were suppressed, or ended before a request was
-- made. Those come earlier, so they have ended when the message is claimed, by themselves or in a digest. In doubt, the
-- webhook was told.
create function needless(of_notification uuid, undo_within interval) returns boolean language sql stable as $$
    select case
        when n.reason = 'ESCALATED' then
            coalesce(now() - case a.state when 'ACKNOWLEDGED' then a.acknowledged_at when 'RESOLVED' then a.resolved_at end > undo_within, false)
        when n.reason in ('ACKNOWLEDGED', 'RESOLVED', 'REOPENED') then not exists (
            select
            from notification e
            left join digest_member m on m.notification_id = e.notification_id
            cross join lateral (select coalesce(m.digest_id, e.notification_id) as id) d
            left join settlement s on s.notification_id = d.id
            left join outbox o on o.notification_id = d.id
            where e.alert_id = n.alert_id and e.webhook_id = n.webhook_id and e.about is null and e.reason not in ('ACKNOWLEDGED', 'RESOLVED', 'REOPENED')
              and case
                    when exists (select from attempt t where t.notification_id = d.id and t.verdict is distinct from 'NOT_MADE') then true
                    when o.notification_id is not null then o.claim_token is not null
                    when s.notification_id is null or s.status = 'DELIVERED' then true
                    else s.attempt is not null and s.verdict is distinct from 'NOT_MADE'
                  end)
        else false
    end
    from notification n join alert a using (alert_id)
    where n.notification_id = of_notification
$$;
