-- +goose Up

-- How many exchanges became visible beyond the look-back of their rule and have no alert, over all rules that there
-- ever were. The counts of a rule go with the rule, and this number does not: it never falls.
create table late_dropped_total (
    only_row  boolean primary key default true check (only_row),
    exchanges bigint not null check (exchanges >= 0)
);
insert into late_dropped_total (exchanges)
select coalesce((select sum(late_dropped) from rule_state), 0) + coalesce((select sum(exchanges) from late_dropped), 0);

-- What the last comparison of a rule on nobody's request left for the next ones: what it covered, and what it found
-- missing. By that they distinguish what became visible too late from what is missing.
create table rule_comparison (
    rule_id    uuid primary key references rule_state on delete cascade,
    comparison jsonb not null
);
