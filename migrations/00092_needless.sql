-- +goose Up

-- Whether a message is of no use to its receiver any more, unless a person sends it again: an escalation of an alert that
-- was acknowledged or resolved so long ago that it cannot be undone; and what happened to an alert of which no message to
-- the webhook says, or will say, that it fires, because Tocsin gave those messages up before the first attempt or a silence
-- suppressed them.
create function needless(of_notification uuid, undo_within interval) returns boolean language sql stable as $$
    select case
        when n.reason = 'ESCALATED' then
            coalesce(now() - case a.state when 'ACKNOWLEDGED' then a.acknowledged_at when 'RESOLVED' then a.resolved_at end > undo_within, false)
        when n.reason in ('ACKNOWLEDGED', 'RESOLVED', 'REOPENED') then not exists (
            select from notification e left join settlement s using (notification_id)
            where e.alert_id = n.alert_id and e.webhook_id = n.webhook_id and e.about is null and e.reason not in ('ACKNOWLEDGED', 'RESOLVED', 'REOPENED')
              and (s.status = 'SUPPRESSED' or s.status = 'DISCARDED' and s.discarded_by = 'Tocsin' and s.verdict = 'NOT_MADE' and s.attempt = 1) is not true)
        else false
    end
    from notification n join alert a using (alert_id)
    where n.notification_id = of_notification
$$;
