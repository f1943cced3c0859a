-- +goose Up

-- No answer can show an instant after the year 9999. Requests with one are refused, but those that were stored before
-- made every list fail that contains them. What ends later ends with that year. A silence starts before it, so that its
-- first window can be shown.
update api_token set expires_at = '9999-12-31 23:59:59+00' where expires_at >= '10000-01-01 00:00:00+00';

update silence
set starts_at = least(starts_at, '9998-12-31 23:59:59+00'),
    ends_at = case when ends_at >= '10000-01-01 00:00:00+00' then '9999-12-31 23:59:59+00' else ends_at end
where starts_at >= '9999-01-01 00:00:00+00' or ends_at >= '10000-01-01 00:00:00+00';
