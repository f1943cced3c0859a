-- +goose Up

-- How many notifications may wait un-attempted before they are gathered into
-- digests; 0 is never.
alter table webhook
    add column digest_above integer not null default 0 check (digest_above between 0 and 100000);

update webhook set digest_above = 20 where kind = 'slack';

-- A digest is one message that stands for many notifications. It is a
-- notification itself, of no alert of its own.
alter table notification
    alter column alert_id drop not null,
    alter column rule_id drop not null,
    drop constraint notification_reason_check,
    add constraint notification_reason_check
        check (reason in ('FIRED', 'REMINDER', 'RESOLVED', 'RULE_FAILING', 'RULE_RECOVERED', 'WEBHOOK_OFF', 'DIGEST')),
    add constraint digest_has_no_alert
        check ((reason = 'DIGEST') = (alert_id is null) and (reason = 'DIGEST') = (rule_id is null));

-- How many notifications a digest gathered.
create table digest (
    notification_id uuid primary key references notification on delete cascade,
    size            integer not null check (size > 0)
);

-- Which message stands for a notification. The primary key holds each to one
-- digest. A digest cannot be deleted before its members: they have its status.
create table digest_member (
    notification_id uuid primary key references notification on delete cascade,
    digest_id       uuid not null references digest
);

create index digest_member_of_digest on digest_member (digest_id);

-- What people sent again. The generation is part of the webhook-id, so that a
-- receiver does not take a retry for a repeat.
create table retry (
    notification_id uuid not null references notification on delete cascade,
    generation      integer not null check (generation > 0),
    retried_at      timestamptz not null default now(),
    retried_by      text not null,
    primary key (notification_id, generation)
);

alter table outbox
    add column digest       boolean not null default false,
    -- How often a person has sent the notification again, and how many attempts
    -- had been begun when he last did.
    add column generation   integer not null default 0,
    add column begun_before integer not null default 0,
    -- A person wants this message by itself: it is never gathered.
    add column alone        boolean not null default false;

create index outbox_digest_due on outbox (webhook_id, due_at, notification_id) where digest;

-- The status of a member is that of its digest.
create or replace view notification_status as
select n.notification_id, n.tenant_id, n.alert_id, n.rule_id, n.webhook_id, n.reason, n.created_at,
       coalesce(s.status, case when o.attempts > 0 then 'RETRYING' else 'PENDING' end) as status,
       o.due_at as next_attempt_at,
       s.settled_at,
       m.digest_id,
       d.size as digest_size
from notification n
left join digest_member m using (notification_id)
left join digest d on d.notification_id = coalesce(m.digest_id, n.notification_id)
left join outbox o on o.notification_id = coalesce(m.digest_id, n.notification_id)
left join settlement s on s.notification_id = coalesce(m.digest_id, n.notification_id);
