-- +goose Up

-- While anybody holds a transaction open, what is dead stays, and what is written
-- cannot be marked as visible to all. What reads everything for that reason alone
-- costs more the more there is.

-- The queue, for whoever asks by ready_at, and nobody else. A row that is looked up
-- by its id is found by the primary key: a Postgres that believes the outbox empty,
-- as it is after each storm, takes this index to be as good, and passes through
-- all its entries, of rows that are long settled.
drop index outbox_ready;
create index outbox_ready on outbox (webhook_id, ready_at, notification_id) where ready_at is not null;

-- A vacuum for what was inserted serves to freeze it, here, and nothing else: no
-- query reads these tables' indexes alone. Each one reads again all that was written
-- since the oldest transaction began; so it comes when there is twice as much.
alter table notification_body set (autovacuum_vacuum_insert_scale_factor = 1);
alter table attempt set (autovacuum_vacuum_insert_scale_factor = 1);

-- Of alerts, an index-only scan gains by each. A twentieth was too often: by it all
-- are read twenty times until there are twice as many.
alter table alert reset (autovacuum_vacuum_insert_scale_factor);

-- Rows of these tables are found by their keys, and no plan depends on what the other
-- columns hold: an analysis reads 3,000 pages of each, and not 30,000.
alter table outbox
    alter notification_id set statistics 10, alter webhook_id set statistics 10, alter due_at set statistics 10,
    alter attempts set statistics 10, alter counted set statistics 10, alter claim_token set statistics 10,
    alter claimed_by set statistics 10, alter digest set statistics 10, alter generation set statistics 10,
    alter begun_before set statistics 10, alter alone set statistics 10, alter begun_at set statistics 10,
    alter ready_at set statistics 10;
alter table notification_body
    alter notification_id set statistics 10, alter content_type set statistics 10, alter content set statistics 0,
    alter problem set statistics 10, alter request set statistics 0;
alter table attempt
    alter notification_id set statistics 10, alter attempt set statistics 10, alter claim_token set statistics 10,
    alter replica set statistics 10, alter started_at set statistics 10, alter finished_at set statistics 10,
    alter verdict set statistics 10, alter status_code set statistics 10, alter error set statistics 0,
    alter response set statistics 0, alter duration_us set statistics 10, alter request set statistics 0,
    alter response_head set statistics 0;
