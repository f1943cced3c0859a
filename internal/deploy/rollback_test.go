//go:build update

package deploy

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// TestARollbackLosesAndRepeatsNothing updates a running Tocsin, replica by replica, to this version
// and back to the previous one, which works with the schema of this one, as docs/install.md says.
// Exchanges fail at every step.
func TestARollbackLosesAndRepeatsNothing(t *testing.T) {
	base, _ := servers(t)
	u := newDatabases(t, programBefore(t, "TOCSIN_TEST_BESIDE"), base)
	receiver := httptest.NewServer(u.got)
	t.Cleanup(receiver.Close)
	u.does(u.before, "migrate")
	const path = "/an-hour"
	old, log := u.serve(u.before)
	hook := u.makes("/webhooks", `{"name": "hook", "kind": "generic", "url": %q, "maxConcurrent": 50}`, receiver.URL+path)
	u.makes("/rules", `{"name": "an hour", "fireMode": "PER_EXCHANGE", "severity": "INFO", "lookBackSeconds": 3600, "filter": {"statuses": ["FAILED"]}, "webhookIds": [%q]}`, hook)
	u.fail(200, "rand() % 3000")
	u.arrived(path)
	u.makes("/alerts/acknowledge", `{"filter": {}}`)

	// Update: the new version runs together with the old one, then by itself.
	u.does(u.now, "migrate")
	logs := []*bytes.Buffer{log}
	replace := func(by string) {
		t.Helper()
		u.address = freeAddress(t)
		next, log := u.serve(by)
		u.fail(300, "rand() % 3000")
		u.stop(old, logs[len(logs)-1])
		old, logs = next, append(logs, log)
		u.fail(300, "if(rand() % 4 = 0, rand() % 3000, 0)")
	}
	replace(u.now)
	u.arrived(path)
	// And back, on the schema of the new version. The unit of the package migrates before each
	// start.
	u.does(u.before, "migrate")
	replace(u.before)
	u.arrived(path)
	u.makes("/alerts/resolve", `{"filter": {"state": ["ACKNOWLEDGED"]}}`)
	// The old version can be started again as well.
	u.stop(old, logs[len(logs)-1])
	old, log = u.serve(u.before)
	u.fail(100, "rand() % 3000")
	u.arrived(path)
	u.does(u.before, "reconcile", "--hours", "2", "--confirm", "1s")
	u.stop(old, log)

	failed := int(u.failed.Load())
	u.deliveredOnce(0, failed)
	if n := u.number(t.Context(), `select count(*)::int from alert where not health`); n != failed {
		t.Errorf("%d alerts about %d exchanges", n, failed)
	}
	if n := u.number(t.Context(), `select count(*)::int from alert where state = 'RESOLVED'`); n != 200 {
		t.Errorf("%d alerts are resolved, want the 200 that were acknowledged", n)
	}
	for _, log := range append(logs, log) {
		if strings.Contains(log.String(), "level=ERROR") {
			t.Errorf("a log has errors:\n%s", log)
		}
	}
}

// TestABackupIsTheWayBackWhereTheSchemaIsNot takes a dump before an update to a schema with which
// the previous version cannot work, updates, and goes back by restoring the dump, as
// docs/install.md describes: each exchange has one alert again; alerts from before the backup are
// not sent again, and those of the time of the new version are sent twice.
func TestABackupIsTheWayBackWhereTheSchemaIsNot(t *testing.T) {
	base, programs := ownPostgres(t)
	u := newDatabases(t, programBefore(t, "TOCSIN_TEST_BEFORE"), base)
	u.ordinary(base)
	receiver := httptest.NewServer(u.got)
	t.Cleanup(receiver.Close)
	u.does(u.before, "migrate")
	const path = "/an-hour"
	cmd, log := u.serve(u.before)
	hook := u.makes("/webhooks", `{"name": "hook", "kind": "generic", "url": %q, "headers": {"X-Key": "sealed"}, "maxConcurrent": 50}`, receiver.URL+path)
	u.makes("/rules", `{"name": "an hour", "fireMode": "PER_EXCHANGE", "severity": "INFO", "lookBackSeconds": 3600, "filter": {"statuses": ["FAILED"]}, "webhookIds": [%q]}`, hook)
	u.fail(500, "rand() % 3000")
	u.arrived(path)
	u.makes("/alerts/acknowledge", `{"filter": {}}`)
	u.stop(cmd, log)
	dump := u.dump(programs)

	u.does(u.now, "migrate")
	cmd, log = u.serve(u.now)
	u.fail(300, "rand() % 3000")
	u.arrived(path)
	u.stop(cmd, log)
	if out, err := u.command(u.before, "serve").CombinedOutput(); err == nil || !bytes.Contains(out, []byte("schema")) {
		t.Fatalf("the version before starts on the schema of this one: %v\n%s", err, out)
	}

	u.restore(base, programs, dump)
	cmd, log = u.serve(u.before)
	u.fail(200, "rand() % 3000")
	u.arrived(path)
	until(t, "alerts", func(ctx context.Context) error {
		if n, want := u.number(ctx, `select count(*)::int from alert where not health`), int(u.failed.Load()); n != want {
			return fmt.Errorf("%d alerts of %d exchanges", n, want)
		}
		if n := u.number(ctx, `select count(*)::int from outbox`); n > 0 {
			return fmt.Errorf("%d messages wait", n)
		}
		return nil
	})
	u.stop(cmd, log)
	if n := u.number(t.Context(), `select count(*)::int from alert where state = 'ACKNOWLEDGED'`); n != 500 {
		t.Errorf("%d alerts are acknowledged, want those of before the backup", n)
	}
	u.deliveredOnce(0, 500)
	u.delivered(500, 800, 2)
	u.deliveredOnce(800, 1000)
}

func (u *update) deliveredOnce(from, to int) {
	u.t.Helper()
	u.delivered(from, to, 1)
}

// delivered checks that each exchange of a range was sent the given number of times.
func (u *update) delivered(from, to, times int) {
	u.t.Helper()
	u.got.mutex.Lock()
	defer u.got.mutex.Unlock()
	for key, messages := range u.got.messages {
		_, id, _ := strings.Cut(key, " ")
		exchange, err := strconv.Atoi(id)
		if err != nil {
			u.t.Fatal(err)
		}
		got := 0
		for _, n := range messages {
			got += n
		}
		if exchange >= from && exchange < to && got != times {
			u.t.Errorf("%s was notified %d times, want %d: %v", key, got, times, messages)
		}
	}
}
