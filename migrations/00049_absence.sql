-- +goose Up

-- Window rules also raise where fewer exchanges are seen than are expected: absence holds
-- which groups are expected, and when. A program that does not know of them would raise
-- where there are enough.
alter table rule
    add column absence jsonb not null default '{}',
    drop constraint rule_fire_mode_check,
    drop constraint count_is_complete,
    add constraint rule_fire_mode_check check (fire_mode in ('PER_EXCHANGE', 'COUNT_IN_WINDOW', 'RATIO_IN_WINDOW', 'DURATION_IN_WINDOW', 'ABSENT_IN_WINDOW')),
    add constraint count_is_complete check ((fire_mode in ('COUNT_IN_WINDOW', 'ABSENT_IN_WINDOW')) = (threshold > 0)),
    add constraint only_absence_expects check (fire_mode = 'ABSENT_IN_WINDOW' or absence = '{}');

-- How completely the source was seen: from when on without a pause, up to which watermark,
-- how late exchanges became visible, and up to where absence was judged.
alter table checkpoint
    add column watched_since_ns bigint not null default 0,
    add column watched_until_ns bigint not null default 0,
    add column late_ns bigint not null default 0,
    add column absence_judged_ns bigint not null default 0;
update schema_compatibility set least = 49;
