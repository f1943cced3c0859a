-- +goose Up

-- What a webhook has heard of an alert, or will hear: how many messages count, and the silence of the last one where
-- silences suppressed all of them. Messages that Tocsin gave up before the first attempt do not count, such as those
-- that were of no use any more when quiet hours ended. Programs before this one call unheard(), which counts them.
create function heard(of_alert uuid, of_webhook uuid, out messages bigint, out silence_id uuid) language sql stable as $$
    select count(*),
           case when bool_and(s.silence_id is not null) then (array_agg(s.silence_id order by e.created_at desc, e.notification_id desc))[1] end
    from notification e left join settlement s using (notification_id)
    where e.alert_id = of_alert and e.webhook_id = of_webhook and e.about is null
      and (s.status = 'DISCARDED' and s.discarded_by = 'Tocsin' and s.verdict = 'NOT_MADE' and s.attempt = 1) is not true
$$;
