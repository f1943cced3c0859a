-- +goose Up

-- The silence of the last message about an alert for a webhook, where silences suppressed all of
-- them: whoever has not heard of an alert is not told of its end.
create function unheard(of_alert uuid, of_webhook uuid) returns uuid language sql stable as $$
    select case when bool_and(s.silence_id is not null) then (array_agg(s.silence_id order by e.created_at desc, e.notification_id desc))[1] end
    from notification e left join settlement s using (notification_id)
    where e.alert_id = of_alert and e.webhook_id = of_webhook and e.about is null
$$;
