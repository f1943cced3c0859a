-- +goose Up

-- Window rules also compare a share or a percentile: measure holds which, and with what. A
-- program that does not know of them takes such a rule for a count of nothing.
alter table rule
    add column measure jsonb not null default '{}',
    drop constraint rule_fire_mode_check,
    drop constraint counting_is_complete,
    drop constraint only_counting_groups,
    add constraint rule_fire_mode_check check (fire_mode in ('PER_EXCHANGE', 'COUNT_IN_WINDOW', 'RATIO_IN_WINDOW', 'DURATION_IN_WINDOW')),
    add constraint window_is_complete check ((fire_mode = 'PER_EXCHANGE') = (window_seconds < 10)),
    add constraint count_is_complete check ((fire_mode = 'COUNT_IN_WINDOW') = (threshold > 0)),
    add constraint measure_is_complete check ((fire_mode in ('RATIO_IN_WINDOW', 'DURATION_IN_WINDOW')) = (measure ? 'minVolume')),
    add constraint only_windows_group check (fire_mode <> 'PER_EXCHANGE' or (group_by = '' and not notify_on_resolve));
update schema_compatibility set least = 43;
