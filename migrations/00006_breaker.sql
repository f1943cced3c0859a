-- +goose Up

-- How the flow to each webhook stands: what the attempts tell, and what its rate
-- still allows. Apart from the definition, so that an attempt and an edit do not
-- wait for each other. A webhook that answers and has no rate never rewrites it.
create table webhook_state (
    webhook_id    uuid primary key references webhook on delete cascade,
    -- Attempts in a row that the receiver did not answer; 0 after one that it did.
    failures      integer not null default 0 check (failures >= 0),
    last_error    text not null default '',
    last_error_at timestamptz,
    -- The breaker: since when it is open, null while it is closed; how many times
    -- in a row it has opened; and until when nothing is sent, or nobody but the
    -- probe at hand.
    opened_at     timestamptz,
    openings      integer not null default 0 check (openings >= 0),
    open_until    timestamptz,
    -- The claim under which a probe is on its way.
    probe_id      uuid,
    probe_token   bigint,
    -- The instant at which the rate has been made up for what was sent.
    next_send_at  timestamptz,
    constraint open_is_complete check (num_nonnulls(opened_at, open_until) in (0, 2) and (opened_at is null) = (openings = 0)),
    constraint only_open_probes check (num_nonnulls(probe_id, probe_token) in (0, 2) and (opened_at is not null or probe_id is null))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

create index webhook_state_open on webhook_state (webhook_id) where opened_at is not null;

insert into webhook_state (webhook_id) select webhook_id from webhook;

-- +goose StatementBegin
create function webhook_state_begin() returns trigger language plpgsql as $$
begin
    insert into webhook_state (webhook_id) values (new.webhook_id) on conflict do nothing;
    return new;
end $$;
-- +goose StatementEnd

create trigger webhook_state_begin after insert on webhook for each row execute function webhook_state_begin();

-- How many messages a rate allows at an instant; below one means none yet. At
-- most a tenth of a second's worth goes out at once, at least one.
-- +goose StatementBegin
create function rate_tokens(rate double precision, next_send_at timestamptz, at timestamptz)
returns double precision language sql immutable as $$
    select greatest(1, ceil(rate / 10)) - greatest(0, coalesce(extract(epoch from next_send_at - at), 0)::double precision) * rate
$$;
-- +goose StatementEnd

-- An alert about health is about its rule or, where one is named, about a
-- webhook that was switched off; its rule is then the one whose message met that.
alter table alert
    add column webhook_id uuid references webhook,
    add constraint only_health_of_webhooks check (webhook_id is null or health);

drop index alert_health_once;
create unique index alert_health_once on alert (rule_id) where health and webhook_id is null and state <> 'RESOLVED';
create unique index alert_webhook_once on alert (webhook_id) where webhook_id is not null and state <> 'RESOLVED';

alter table notification
    drop constraint notification_reason_check,
    add constraint notification_reason_check
        check (reason in ('FIRED', 'REMINDER', 'RESOLVED', 'RULE_FAILING', 'RULE_RECOVERED', 'WEBHOOK_OFF'));
