package app_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"tocsin/internal/pgtest"
)

// TestDoctorNamesTheSessionThatKeepsRowsLocked examines as a role that is no superuser, and to which Postgres hides since
// when the transaction of another role is open.
func TestDoctorNamesTheSessionThatKeepsRowsLocked(t *testing.T) {
	t.Parallel()
	p := newInstallation(t)
	p.webhook(t, p.EncryptionKey, p.receiver)
	role := "doctor_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	admin := pgtest.Conn(t, p.PostgresURL)
	for _, statement := range []string{
		`create role ` + role + ` login password 'examined'`, `grant all on all tables in schema public to ` + role, `grant all on all sequences in schema public to ` + role,
	} {
		if _, err := admin.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	locking, maintaining, waiting := pgtest.Conn(t, p.PostgresURL), pgtest.Conn(t, p.PostgresURL), pgtest.Conn(t, p.PostgresURL)
	own, err := url.Parse(p.PostgresURL)
	if err != nil {
		t.Fatal(err)
	}
	own.User = url.UserPassword(role, "examined")
	p.PostgresURL = own.String()
	vacuum, err := maintaining.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := vacuum.Exec(t.Context(), `lock table webhook in share update exclusive mode`); err != nil {
		t.Fatal(err)
	}
	lines, healthy := p.examined(t)
	want(t, lines, "OK locks: no other session keeps rows locked")
	if !healthy {
		t.Errorf("not healthy:\n%s", lines)
	}

	if _, err := locking.Exec(t.Context(), `set application_name = 'psql'`); err != nil {
		t.Fatal(err)
	}
	tx, err := locking.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if tag, err := tx.Exec(t.Context(), `select from webhook for update`); err != nil || tag.RowsAffected() != 1 {
		t.Fatal(tag, err)
	}
	pid := locking.PgConn().PID()
	waits := make(chan error, 1)
	go func() {
		_, err := waiting.Exec(t.Context(), `select from webhook for update`)
		waits <- err
	}()
	lines, healthy = p.examined(t)
	want(t, lines, fmt.Sprintf("locks: session %d (user ", pid), `application "psql"`, ": webhook; sessions that wait for it: 1", fmt.Sprintf("select pg_terminate_backend(%d)", pid))
	if !healthy {
		t.Errorf("a lock is a warning:\n%s", lines)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-waits; err != nil {
		t.Fatal(err)
	}

	for _, statement := range []string{`begin`, `select from webhook for update`, `prepare transaction 'ada''s'`} {
		if _, err := locking.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	lines, _ = p.examined(t)
	want(t, lines, "locks: prepared transaction 'ada''s' (user ", ") has locked rows or tables of Tocsin: webhook; sessions that wait for it: 0", "rollback prepared 'ada''s'")
	if _, err := locking.Exec(t.Context(), `rollback prepared 'ada''s'`); err != nil {
		t.Fatal(err)
	}
	if err := vacuum.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}
