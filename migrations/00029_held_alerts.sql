-- +goose Up

-- A window alert that a person resolved holds its group back until the value was below
-- the threshold once. Reminders count the reminders of an alert: the next one's
-- generation.
alter table alert
    add column held      boolean not null default false,
    add column reminders integer not null default 0;

update alert a
set reminders = n.reminders
from (
    select n.alert_id, max(n.generation) + 1 as reminders from notification n where n.reason = 'REMINDER' group by n.alert_id
) n
where n.alert_id = a.alert_id and a.state <> 'RESOLVED';

-- At most one alert is open or held for each rule and group.
drop index alert_open_once;
create unique index alert_open_once on alert (rule_id, group_key) where group_key is not null and (state <> 'RESOLVED' or held);
