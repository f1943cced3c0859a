package postgres_test

import (
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
