//go:build update

package deploy

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// ownPostgres starts a Postgres with the version of the installed pg_dump, and returns its URL and
// the folder of its programs. Devstack's Postgres has no pg_dump, and an older pg_dump refuses it.
func ownPostgres(t *testing.T) (base *url.URL, programs string) {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		t.Fatal("there is no Postgres with pg_dump: apt-get install postgresql")
	}
	programs = filepath.Dir(found[len(found)-1])
	dir, err := os.MkdirTemp("", "tocsin-backup") //nolint:usetesting // another user writes to it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	const nobody = 65534
	as := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(programs, name), args...) //nolint:noctx // ends by itself, or is ended
		cmd.Dir = dir
		if os.Geteuid() == 0 {
			// It refuses to run as root.
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}
		return cmd
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(dir, "data")
	if out, err := as("initdb", "--pgdata="+data, "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	address := freeAddress(t)
	_, port, _ := strings.Cut(address, ":")
	server := as("postgres", "-D", data, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGINT)
		_ = server.Wait()
	})
	base = &url.URL{Scheme: "postgres", User: url.User("postgres"), Host: address, Path: "/postgres", RawQuery: "sslmode=disable"}
	until(t, "Postgres", func(context.Context) error {
		return as("pg_isready", "--host=127.0.0.1", "--port="+port).Run()
	})
	return base, programs
}

// TestABackupIsRestored dumps a running Tocsin's database as docs/install.md describes, loses the
// database later, and restores it: every exchange has one alert, and what was sent twice has the
// same id.
func TestABackupIsRestored(t *testing.T) {
	base, programs := ownPostgres(t)
	program, err := filepath.Abs(binary)
	if err != nil {
		t.Fatal(err)
	}
	u := newDatabases(t, program, base)
	u.ordinary(base)
	receiver := httptest.NewServer(u.got)
	t.Cleanup(receiver.Close)
	u.does(u.now, "migrate")
	cmd, log := u.serve(u.now)
	hook := u.makes("/webhooks", `{"name": "hook", "kind": "generic", "url": %q, "headers": {"X-Key": "sealed"}, "maxConcurrent": 50}`, receiver.URL+"/an-hour")
	u.makes("/rules", `{"name": "an hour", "fireMode": "PER_EXCHANGE", "severity": "INFO", "lookBackSeconds": 3600, "filter": {"statuses": ["FAILED"]}, "webhookIds": [%q]}`, hook)
	u.fail(1000, "rand() % 3000")
	u.arrived("/an-hour")
	u.makes("/alerts/acknowledge", `{"filter": {}}`)

	dump := u.dump(programs)
	u.fail(500, "rand() % 3000")
	u.arrived("/an-hour")

	u.stop(cmd, log)
	u.restore(base, programs, dump)
	u.fail(200, "rand() % 3000")
	if out := u.does(u.now, "doctor"); !strings.Contains(out, "✓ keys") {
		t.Errorf("the doctor does not say that the secrets open:\n%s", out)
	}
	cmd, log = u.serve(u.now)
	u.arrived("/an-hour")
	until(t, "alerts", func(ctx context.Context) error {
		if n, want := u.number(ctx, `select count(*)::int from alert where not health`), int(u.failed.Load()); n != want {
			return fmt.Errorf("%d alerts of %d exchanges", n, want)
		}
		if n := u.number(ctx, `select count(*)::int from outbox`); n > 0 {
			return fmt.Errorf("%d messages wait", n)
		}
		return nil
	})
	u.does(u.now, "reconcile", "--hours", "2", "--confirm", "1s")
	u.stop(cmd, log)
	if n := u.number(t.Context(), `select count(*)::int from alert where state = 'ACKNOWLEDGED'`); n != 1000 {
		t.Errorf("%d alerts are acknowledged, want those of before the backup", n)
	}
	twice := 0
	u.got.mutex.Lock()
	defer u.got.mutex.Unlock()
	for key, messages := range u.got.messages {
		if len(messages) != 1 {
			t.Errorf("%s has the messages %v", key, messages)
		}
		for id, n := range messages {
			if n > 2 {
				t.Errorf("%s was notified %d times by %s", key, n, id)
			}
			if n == 2 {
				twice++
			}
		}
	}
	if twice != 500 {
		t.Errorf("%d exchanges were sent twice, want the 500 between backup and loss", twice)
	}
}

// ordinary hands the database to a new user who owns nothing else.
func (u *update) ordinary(base *url.URL) {
	u.t.Helper()
	own := mustParse(u.t, u.postgres)
	admin := u.connect(base.String())
	for _, statement := range []string{"create role tocsin login", "alter database " + strings.TrimPrefix(own.Path, "/") + " owner to tocsin"} {
		if _, err := admin.Exec(u.t.Context(), statement); err != nil {
			u.t.Fatal(err)
		}
	}
	own.User = url.User("tocsin")
	u.postgres = own.String()
}

// dump backs up the database with the command of docs/install.md.
func (u *update) dump(programs string) (file string) {
	u.t.Helper()
	file = filepath.Join(u.t.TempDir(), "tocsin.dump")
	u.runs(nil, programs, file, "pg_dump")
	return file
}

// restore replaces the database, to which nothing is connected, by a dump, with the commands of
// docs/install.md.
func (u *update) restore(base *url.URL, programs, dump string) {
	u.t.Helper()
	for _, name := range []string{"dropdb", "createdb", "pg_restore"} {
		u.runs(base, programs, dump, name)
	}
}

// runs runs a program of Postgres as docs/install.md prints it, for this server and this database.
func (u *update) runs(base *url.URL, programs, dump, name string) {
	u.t.Helper()
	args := printed(u.t, name)
	for i, arg := range args {
		switch arg {
		case "tocsin":
			args[i] = strings.TrimPrefix(mustParse(u.t, u.postgres).Path, "/")
		case "--host=db.example.com":
			args[i] = "--host=" + base.Hostname()
			args = append(args, "--port="+base.Port())
		case `--dbname="$TOCSIN_POSTGRES_URL"`:
			args[i] = "--dbname=" + u.postgres
		default:
			args[i] = strings.Replace(arg, "tocsin.dump", dump, 1)
		}
	}
	if out, err := exec.CommandContext(u.t.Context(), filepath.Join(programs, name), args...).CombinedOutput(); err != nil {
		u.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

func mustParse(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(errors.New("the address cannot be read"))
	}
	return u
}
