package postgres_test

import (
	"slices"
	"testing"

	"tocsin/internal/pgtest"
)

// TestBodiesBecomeAPartition migrates existing bodies, also those of open messages.
func TestBodiesBecomeAPartition(t *testing.T) {
	t.Parallel()
	url := pgtest.Empty(t)
	pgtest.MigrateTo(t, url, 32)
	b := &before{tb: t, url: url, conn: pgtest.Conn(t, url)}
	b.exec(`set session_replication_role = replica`)
	b.exec(`insert into outbox (notification_id, webhook_id, ready_at, attempts)
		select ('00000000-0000-0000-0000-00000000000' || i)::uuid, gen_random_uuid(), now(), i from generate_series(0, 1) i`)
	b.exec(`insert into notification_body (notification_id, content_type, content)
		select ('00000000-0000-0000-0000-00000000000' || i)::uuid, 'text/plain', 'frozen' from generate_series(1, 3) i`)
	b.exec(`set session_replication_role = origin`)
	pgtest.MigrateTo(t, url, 33)
	for what, sql := range map[string]string{
		"all in the first partition":  `select count(*) = 3 from notification_body where tableoid = 'notification_body_first'::regclass and content = 'frozen'`,
		"what is open names its body": `select count(*) = 1 from outbox o join notification_body b on b.notification_id = o.notification_id and b.written_at = o.body_at`,
		"the other names none":        `select count(*) = 1 from outbox where attempts = 0 and body_at is null`,
		"two partitions lie ahead":    `select count(*) = 2 from body_partitions() where ends_at > now()`,
		"what is written now has one": `with written as (insert into notification_body values (gen_random_uuid(), '', '', '', now()) returning tableoid) select count(*) = 1 from written where tableoid <> 'notification_body_rest'::regclass`,
	} {
		if !one[bool](t, b.conn, sql) {
			t.Error(what)
		}
	}
}

// TestDigestsOfDeletedWebhooksEnd migrates a digest that was left when its webhook was deleted, and the digest of a webhook that
// is only disabled.
func TestDigestsOfDeletedWebhooksEnd(t *testing.T) {
	t.Parallel()
	url := pgtest.Empty(t)
	pgtest.MigrateTo(t, url, 93)
	b := &before{tb: t, url: url, conn: pgtest.Conn(t, url)}
	b.exec(`set session_replication_role = replica`)
	b.exec(`insert into webhook (webhook_id, tenant_id, name, kind, secrets, url_host, signed, enabled, timeout_ms, max_concurrent, rate_per_second, deleted_at)
		select ('00000000-0000-0000-0000-00000000000' || i)::uuid, 'acme', 'hook ' || i, 'generic', '', '', false, false, 1000, 1, 0, case when i = 1 then now() end
		from generate_series(1, 2) i`)
	b.exec(`insert into notification (notification_id, tenant_id, webhook_id, reason) select webhook_id, tenant_id, webhook_id, 'DIGEST' from webhook`)
	b.exec(`insert into outbox (notification_id, webhook_id, ready_at, digest) select webhook_id, webhook_id, now(), true from webhook`)
	b.exec(`set session_replication_role = origin`)
	pgtest.MigrateTo(t, url, 94)
	if got := column(t, b.conn, `select w.name || ' ' || s.status from notification_status s join webhook w using (webhook_id) order by 1`); !slices.Equal(got, []string{"hook 1 DISCARDED", "hook 2 PENDING"}) {
		t.Errorf("the digests are %v", got)
	}
}
