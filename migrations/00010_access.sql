-- +goose Up

-- Who may sign in.
create table account (
    account_id          uuid primary key,
    tenant_id           text not null,
    email               text not null,
    name                text not null,
    role                text not null check (role in ('viewer', 'operator', 'editor', 'admin')),
    disabled            boolean not null default false,
    -- Argon2id with its parameters; null where no password has been set.
    password_hash       text,
    password_changed_at timestamptz,
    -- Who the person is at an OpenID Connect provider.
    issuer              text,
    subject             text,
    signed_in_at        timestamptz,
    version             bigint not null default 1,
    created_at          timestamptz not null default now(),
    updated_at          timestamptz not null default now(),
    constraint issuer_with_subject check ((issuer is null) = (subject is null))
);

create unique index account_email_once on account (lower(email));
create unique index account_identity_once on account (issuer, subject);
create index account_of_tenant on account (tenant_id, email collate "C", account_id);

-- A person who is signed in. The cookie's secret is kept as its SHA-256 alone.
create table session (
    secret_hash bytea primary key,
    session_id  uuid not null unique,
    account_id  uuid not null references account on delete cascade,
    address     text not null,
    created_at  timestamptz not null default now(),
    seen_at     timestamptz not null default now(),
    expires_at  timestamptz not null
);

create index session_of_account on session (account_id);
create index session_by_end on session (expires_at);

-- A program's key.
create table api_token (
    token_id    uuid primary key,
    tenant_id   text not null,
    name        text not null,
    role        text not null check (role in ('viewer', 'operator', 'editor', 'admin')),
    secret_hash bytea not null unique,
    -- The end of the secret, by which a person tells tokens apart.
    hint        text not null,
    created_by  text not null,
    created_at  timestamptz not null default now(),
    expires_at  timestamptz,
    used_at     timestamptz
);

create unique index api_token_name_once on api_token (tenant_id, name);

-- Lets somebody in once without a password.
create table sign_in_link (
    secret_hash bytea primary key,
    account_id  uuid not null references account on delete cascade,
    expires_at  timestamptz not null
);

create index sign_in_link_of_account on sign_in_link (account_id);

-- What lets somebody make the first administrator. Each replica that starts
-- while there is no account adds one; the first account ends them all.
create table set_up_code (
    secret_hash bytea primary key,
    expires_at  timestamptz not null
);

-- Attempts to sign in that did not succeed, by account and by address.
create table sign_in_failure (
    subject  bytea primary key,
    failures integer not null default 0,
    last_at  timestamptz not null default now()
);

-- What people and programs changed. Written by triggers and by audit_operation,
-- in the transaction of the change.
create table audit (
    audit_id    bigint generated always as identity primary key,
    tenant_id   text not null,
    at          timestamptz not null default clock_timestamp(),
    -- user, token, program, or database for a change made by hand.
    actor_kind  text not null,
    actor_id    text not null,
    actor       text not null,
    -- How the actor was known: session, token, link, set-up, oidc, command, open.
    via         text not null,
    via_id      text not null,
    address     text not null,
    request_id  text not null,
    -- The operation of the API; empty where there was none.
    operation   text not null,
    action      text not null,
    object_kind text not null,
    object_id   text not null,
    object_name text not null,
    -- Of an update only what changed. Secrets are named, never shown.
    before      jsonb,
    after       jsonb
);

create index audit_of_tenant on audit (tenant_id, audit_id desc);
create index audit_of_object on audit (tenant_id, object_id, audit_id desc);
create index audit_of_actor on audit (tenant_id, actor, audit_id desc);

-- +goose StatementBegin
create function audit_write(tenant text, action text, kind text, id text, name text, was jsonb, became jsonb)
returns void language plpgsql as $$
declare
    who jsonb := nullif(current_setting('tocsin.actor', true), '')::jsonb;
begin
    if who is null then
        who := case when current_setting('application_name') = 'tocsin'
            then jsonb_build_object('kind', 'program', 'name', 'tocsin')
            else jsonb_build_object('kind', 'database', 'name', session_user::text) end;
    end if;
    insert into audit (tenant_id, actor_kind, actor_id, actor, via, via_id, address, request_id, operation, action,
                       object_kind, object_id, object_name, before, after)
    values (tenant, coalesce(who->>'kind', ''), coalesce(who->>'id', ''), coalesce(who->>'name', ''), coalesce(who->>'via', ''),
            coalesce(who->>'viaId', ''), coalesce(who->>'address', ''), coalesce(who->>'requestId', ''),
            coalesce(who->>'operation', ''), action, kind, coalesce(id, ''), coalesce(name, ''), was, became);
    perform set_config('tocsin.audited', 'yes', true);
end
$$;
-- +goose StatementEnd

-- Tells of a transaction on somebody's behalf in which no trigger told anything:
-- the request itself is what there is to tell then.
-- +goose StatementBegin
create function audit_operation() returns void language plpgsql as $$
declare
    who jsonb := nullif(current_setting('tocsin.actor', true), '')::jsonb;
begin
    if coalesce(who->>'operation', '') = '' or coalesce(current_setting('tocsin.audited', true), '') <> '' then
        return;
    end if;
    perform audit_write(who->>'tenant', 'request', coalesce(who->>'objectKind', ''), who->>'objectId', '', null, null);
end
$$;
-- +goose StatementEnd

-- Arguments: the kind of object, its column of ids, its column of names, columns
-- that are secret, and columns that are no change by themselves; lists by commas.
-- +goose StatementBegin
create function audit_row() returns trigger language plpgsql as $$
declare
    was    jsonb := case when tg_op <> 'INSERT' then to_jsonb(old) end;
    became jsonb := case when tg_op <> 'DELETE' then to_jsonb(new) end;
    whole  jsonb := coalesce(became, was);
    action text := case tg_op when 'INSERT' then 'create' else lower(tg_op) end;
    masked text[] := string_to_array(tg_argv[3], ',');
    hidden text[] := string_to_array(tg_argv[4], ',') || array[tg_argv[1], 'tenant_id', 'version', 'created_at', 'updated_at'];
begin
    if tg_op = 'UPDATE' then
        if was->>'deleted_at' is null and became->>'deleted_at' is not null then
            action := 'delete';
        end if;
        hidden := hidden || array(select key from jsonb_each(was) e where e.value = became->e.key);
    end if;
    was := (select jsonb_object_agg(key, case when key = any(masked) and value <> 'null' then '"(secret)"' else value end)
            from jsonb_each(was) where not key = any(hidden));
    became := (select jsonb_object_agg(key, case when key = any(masked) and value <> 'null' then '"(secret)"' else value end)
               from jsonb_each(became) where not key = any(hidden));
    if tg_op <> 'UPDATE' or became is not null then
        perform audit_write(whole->>'tenant_id', action, tg_argv[0], whole->>tg_argv[1], whole->>tg_argv[2], was, became);
    end if;
    return null;
end
$$;
-- +goose StatementEnd

create trigger audit after insert or update or delete on account for each row
    execute function audit_row('user', 'account_id', 'email', '', 'password_hash,signed_in_at');
create trigger audit after insert or update or delete on api_token for each row
    execute function audit_row('token', 'token_id', 'name', 'secret_hash', 'used_at');
create trigger audit after insert or update or delete on rule for each row
    execute function audit_row('rule', 'rule_id', 'name', '', 'deleted_at');
create trigger audit after insert or update or delete on webhook for each row
    execute function audit_row('webhook', 'webhook_id', 'name', 'secrets', 'held_until,deleted_at');

-- +goose StatementBegin
create function audit_binding() returns trigger language plpgsql as $$
declare
    bound  uuid := case when tg_op = 'DELETE' then old.rule_id else new.rule_id end;
    hook   uuid := case when tg_op = 'DELETE' then old.webhook_id else new.webhook_id end;
    told   jsonb := (select jsonb_build_object('webhook_id', hook, 'webhook', w.name) from webhook w where w.webhook_id = hook);
begin
    perform audit_write(r.tenant_id, case when tg_op = 'DELETE' then 'unbind' else 'bind' end, 'rule', r.rule_id::text, r.name,
                        case when tg_op = 'DELETE' then told end, case when tg_op <> 'DELETE' then told end)
    from rule r where r.rule_id = bound;
    return null;
end
$$;
-- +goose StatementEnd

create trigger audit after insert or delete on rule_webhook for each row execute function audit_binding();

-- One entry for each statement, however many alerts somebody acts upon at once.
-- What the evaluator does to alerts is not a person's change.
-- +goose StatementBegin
create function audit_alerts() returns trigger language plpgsql as $$
begin
    perform audit_write(c.tenant_id, 'update', 'alert', case when c.alerts = 1 then c.ids[1] end, case when c.alerts = 1 then c.title end,
                        jsonb_build_object('state', c.was),
                        jsonb_build_object('state', c.became)
                            || case when c.alerts > 1 then jsonb_build_object('alerts', c.alerts, 'ids', c.ids[1:100]) else '{}' end)
    from (select n.tenant_id, o.state as was, n.state as became, count(*) as alerts, min(n.title) as title,
                 array_agg(n.alert_id::text order by n.alert_id) as ids
          from before_rows o join after_rows n using (alert_id)
          where o.state <> n.state
          group by n.tenant_id, o.state, n.state) c;
    return null;
end
$$;
-- +goose StatementEnd

create trigger audit after update on alert referencing old table as before_rows new table as after_rows for each statement
    when (current_setting('tocsin.actor', true) <> '') execute function audit_alerts();

-- What was told stays told; what is older than the retention goes as a whole.
-- +goose StatementBegin
create function audit_stays() returns trigger language plpgsql as $$
begin
    raise exception 'the audit log cannot be changed';
end
$$;
-- +goose StatementEnd

create trigger stays before update on audit for each row execute function audit_stays();
