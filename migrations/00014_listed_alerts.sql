-- +goose Up

-- What an alert about no exchange, or one that is older than signatures, is
-- folded by: the error type of the exchange that it shows.
update alert set signature = left(coalesce(exchange->>'errorType', ''), 200) where signature is null;
alter table alert
    alter column signature set default '',
    alter column signature set not null;

-- The one index of the inbox: the alerts of a state, newest first, with all that
-- a list is filtered and folded by. What does not match is passed over in the
-- index, and counts and folds read nothing else. Names of applications and
-- routes are as long as they like, so that their hashes stand for them.
create index alert_listed on alert (tenant_id, state, fired_at desc, alert_id desc, rule_id, severity,
                                    hashtext(application), hashtext(route), signature);
drop index alert_inbox;
drop index alert_inbox_by_state;

-- Counts and folds read the index alone where a vacuum has seen what it tells.
alter table alert set (autovacuum_vacuum_insert_scale_factor = 0.05);
