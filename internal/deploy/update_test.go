//go:build update

package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// update is a Tocsin of the previous version, with databases of its own, that is replaced by this
// version.
type update struct {
	t *testing.T
	// before and now are the two programs.
	before, now          string
	postgres, clickhouse string
	got                  *perRule
	address              string
	// failed is the number of failed exchanges, each counted once.
	failed atomic.Int64
}

// perRule counts what a receiver gets: how often each message arrived, by path, which stands for
// the rule, and exchange.
type perRule struct {
	mutex    sync.Mutex
	messages map[string]map[string]int
	// refuses says that one in ten exchanges is rejected for now.
	refuses atomic.Bool
}

func (p *perRule) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Data struct {
			Exchange struct {
				ExecutionID string `json:"executionId"`
			} `json:"exchange"`
		} `json:"data"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	id := body.Data.Exchange.ExecutionID
	if p.refuses.Load() && strings.HasSuffix(id, "7") {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	key := r.URL.Path + " " + id
	if p.messages[key] == nil {
		p.messages[key] = map[string]int{}
	}
	p.messages[key][r.Header.Get("Webhook-Id")]++
}

// of returns for how many exchanges a path got messages.
func (p *perRule) of(path string) (exchanges int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for key := range p.messages {
		if strings.HasPrefix(key, path+" ") {
			exchanges++
		}
	}
	return exchanges
}

func newUpdate(t *testing.T) *update {
	t.Helper()
	base, _ := servers(t)
	return newDatabases(t, programBefore(t, "TOCSIN_TEST_BEFORE"), base)
}

// programBefore returns the program of a previous version, from an environment variable.
func programBefore(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Fatalf("%s does not name the program of a version before: run the test with make test-update or make test-rollback", variable)
	}
	return path
}

// newDatabases creates databases; the one for exchanges has the table that a program describes.
func newDatabases(t *testing.T, program string, base *url.URL) *update {
	t.Helper()
	now, err := filepath.Abs(binary)
	if err != nil {
		t.Fatal(err)
	}
	_, clickhouse := servers(t)
	u := &update{t: t, before: program, now: now, got: &perRule{messages: map[string]map[string]int{}}, address: freeAddress(t)}
	name := "update_" + strconv.FormatInt(time.Now().UnixNano(), 36)
	if _, err := u.connect(base.String()).Exec(t.Context(), "create database "+name); err != nil {
		t.Fatal(err)
	}
	own := *base
	own.Path = "/" + name
	u.postgres = own.String()
	source, err := url.Parse(clickhouse)
	if err != nil {
		t.Fatal(err)
	}
	source.Path = "/" + name
	u.clickhouse = source.String()
	source.Path, source.RawQuery = "/", ""
	if _, err := post(t.Context(), source.String(), []byte("CREATE DATABASE "+name)); err != nil {
		t.Fatal(err)
	}
	statement, err := u.command(program, "source", "ddl").Output()
	if err != nil {
		t.Fatal(err)
	}
	u.query(string(statement))
	return u
}

func (u *update) connect(address string) *pgx.Conn {
	u.t.Helper()
	conn, err := pgx.Connect(u.t.Context(), address)
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(u.t.Context())) })
	return conn
}

// query lets ClickHouse execute a statement.
func (u *update) query(statement string) {
	u.t.Helper()
	address, err := url.Parse(u.clickhouse)
	if err != nil {
		u.t.Fatal(err)
	}
	address.RawQuery = url.Values{"database": {strings.TrimPrefix(address.Path, "/")}}.Encode()
	address.Path = "/"
	if _, err := post(u.t.Context(), address.String(), []byte(statement)); err != nil {
		u.t.Fatal(err)
	}
}

// number returns a number that is read from Postgres.
func (u *update) number(ctx context.Context, query string) (n int) {
	u.t.Helper()
	conn, err := pgx.Connect(ctx, u.postgres)
	if err == nil {
		err = errors.Join(conn.QueryRow(ctx, query).Scan(&n), conn.Close(ctx))
	}
	if err != nil {
		u.t.Fatalf("%s: %v", query, err)
	}
	return n
}

func (u *update) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...) //nolint:noctx // ends by itself, or is ended
	cmd.Env = append(os.Environ(),
		"TOCSIN_POSTGRES_URL="+u.postgres, "TOCSIN_CLICKHOUSE_URL="+u.clickhouse, "TOCSIN_ENCRYPTION_KEY=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
		"TOCSIN_LISTEN="+u.address, "TOCSIN_ACCESS=open", "TOCSIN_OUTGOING_ALLOW=127.0.0.0/8", "TOCSIN_RETRY_SCHEDULE=2s,2s,2s,2s,2s,2s,2s,2s,2s,2s,2s,2s,2s,2s,2s,2s,2s,2s,2s,2s",
		"TOCSIN_BREAKER_AFTER=1000000", "TOCSIN_CLAIM_FOR=3s", "TOCSIN_PAGE_SIZE=200")
	return cmd
}

// makes posts to the API, and returns the id of what was created.
func (u *update) makes(path, body string, args ...any) any {
	u.t.Helper()
	made, err := post(u.t.Context(), "http://"+u.address+"/api/v1"+path, fmt.Appendf(nil, body, args...))
	if err != nil {
		u.t.Fatal(err)
	}
	return made["id"]
}

// does runs a program to its end.
func (u *update) does(program string, args ...string) string {
	u.t.Helper()
	out, err := u.command(program, args...).CombinedOutput()
	if err != nil {
		u.t.Fatalf("%s %v: %v\n%s", program, args, err, out)
	}
	return string(out)
}

// serve starts a server and waits until it is ready.
func (u *update) serve(program string) (cmd *exec.Cmd, log *bytes.Buffer) {
	u.t.Helper()
	cmd, log = u.command(program, "serve"), &bytes.Buffer{}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { _ = cmd.Process.Kill() })
	until(u.t, "a server", func(ctx context.Context) error {
		_, err := get(ctx, "http://"+u.address+"/readyz")
		return err
	})
	return cmd, log
}

func (u *update) stop(cmd *exec.Cmd, log *bytes.Buffer) {
	u.t.Helper()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		u.t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		u.t.Fatalf("a server ended with %v:\n%s", err, log)
	}
}

// fail writes failed exchanges that end now; an expression gives the seconds since their begin.
func (u *update) fail(n int, ago string) {
	u.t.Helper()
	from := u.failed.Add(int64(n)) - int64(n)
	u.query(fmt.Sprintf(`INSERT INTO exchanges (tenant_id, start_time, execution_id, environment, application_id, route_id, status, end_time)
		SELECT 'default', now64(9) - (%s), toString(%d + number), 'test', 'orders', 'r', 'FAILED', now64(9) FROM numbers(%d)`, ago, from, n))
}

// arrived waits until each rule's receiver has a message for each exchange that failed.
func (u *update) arrived(paths ...string) {
	u.t.Helper()
	untilWithin(u.t, 3*time.Minute, "messages", func(context.Context) error {
		for _, path := range paths {
			if n, want := u.got.of(path), int(u.failed.Load()); n != want {
				return fmt.Errorf("%s has messages of %d of %d exchanges", path, n, want)
			}
		}
		return nil
	})
}

// TestAnUpdateLosesAndRepeatsNothing stops the previous version in the middle of its look-back,
// with messages that wait for their next attempt and alerts that users have handled, migrates, and
// continues with this version. Exchanges become visible all the while, many of them behind the
// cursor.
func TestAnUpdateLosesAndRepeatsNothing(t *testing.T) {
	u := newUpdate(t)
	receiver := httptest.NewServer(u.got)
	t.Cleanup(receiver.Close)
	u.does(u.before, "migrate")
	schema := u.number(t.Context(), `select max(version_id)::int from goose_db_version`)
	cmd, log := u.serve(u.before)
	hook := func(path string) any {
		return u.makes("/webhooks", `{"name": %q, "kind": "generic", "url": %q, "maxConcurrent": 50}`, path, receiver.URL+path)
	}
	rule := func(definition string, args ...any) { u.makes("/rules", definition, args...) }
	paths := []string{"/an-hour", "/a-day"}
	rule(`{"name": "an hour", "fireMode": "PER_EXCHANGE", "severity": "INFO", "lookBackSeconds": 3600, "filter": {"statuses": ["FAILED"]}, "webhookIds": [%q]}`, hook(paths[0]))
	rule(`{"name": "a day", "fireMode": "PER_EXCHANGE", "severity": "INFO", "lookBackSeconds": 86400, "filter": {"statuses": ["FAILED"]}, "webhookIds": [%q]}`, hook(paths[1]))
	rule(`{"name": "counts", "fireMode": "COUNT_IN_WINDOW", "severity": "INFO", "threshold": 3, "windowSeconds": 3600, "filter": {"statuses": ["FAILED"]}, "webhookIds": [%q]}`, hook("/counts"))
	rule(`{"name": "off", "enabled": false, "fireMode": "PER_EXCHANGE", "severity": "INFO", "webhookIds": [%q]}`, hook("/off"))
	u.fail(50, "rand() % 50")
	u.arrived(paths...)
	u.makes("/alerts/acknowledge", `{"filter": {}}`)

	// After the restart the replica evaluates the look-back; it is stopped before that is done, and
	// before a tenth of the messages are delivered.
	u.stop(cmd, log)
	u.got.refuses.Store(true)
	u.fail(20_000, "rand() % 3000")
	cmd, log = u.serve(u.before)
	const open = `select count(*)::int from (select owed_from_ns from rule_state union all select owed_from_ns from cohort) s where owed_from_ns is not null`
	until(t, "an unfinished look-back", func(ctx context.Context) error {
		if u.number(ctx, open) == 0 || u.number(ctx, `select count(*)::int from alert`) < 1000 {
			return fmt.Errorf("%d look-backs are open", u.number(ctx, open))
		}
		return nil
	})
	u.stop(cmd, log)
	lookBacks, alerts, waiting := u.number(t.Context(), open), u.number(t.Context(), `select count(*)::int from alert`), u.number(t.Context(), `select count(*)::int from outbox`)
	acknowledged := u.number(t.Context(), `select count(*)::int from alert where state = 'ACKNOWLEDGED'`)
	if lookBacks == 0 || waiting == 0 || acknowledged == 0 || alerts >= 2*int(u.failed.Load()) {
		t.Fatalf("there is nothing to carry over: %d look-backs are open, %d alerts of %d, %d messages wait, %d are acknowledged", lookBacks, alerts, 2*u.failed.Load(), waiting, acknowledged)
	}
	u.fail(500, "rand() % 3000")

	u.does(u.now, "migrate")
	if out, err := u.command(u.before, "serve").CombinedOutput(); err == nil || !bytes.Contains(out, []byte("schema")) {
		t.Errorf("the version before starts on the schema of this one: %v\n%s", err, out)
	}
	cmd, log = u.serve(u.now)
	stop := make(chan struct{})
	var inserting sync.WaitGroup
	inserting.Go(func() {
		for tick := time.NewTicker(200 * time.Millisecond); ; {
			select {
			case <-tick.C:
				u.fail(20, "if(rand() % 4 = 0, rand() % 3000, 0)")
			case <-stop:
				return
			}
		}
	})
	<-time.After(3 * time.Second)
	u.got.refuses.Store(false)
	<-time.After(3 * time.Second)
	close(stop)
	inserting.Wait()
	u.arrived(paths...)

	failed := int(u.failed.Load())
	u.got.mutex.Lock()
	for key, messages := range u.got.messages {
		times := 0
		for _, n := range messages {
			times += n
		}
		if times != 1 {
			t.Errorf("%s arrived %d times, by the ids %v", key, times, messages)
		}
	}
	u.got.mutex.Unlock()
	if n := u.number(t.Context(), `select count(*)::int from alert a join rule r using (rule_id) where r.fire_mode = 'PER_EXCHANGE' and not a.health`); n != 2*failed {
		t.Errorf("%d alerts about %d exchanges by two rules", n, failed)
	}
	if n := u.number(t.Context(), `select count(*)::int from alert a join rule r using (rule_id) where r.fire_mode = 'COUNT_IN_WINDOW'`); n != 1 {
		t.Errorf("the rule that counts has %d alerts, want the one from before", n)
	}
	if n := u.number(t.Context(), `select count(*)::int from alert where state = 'ACKNOWLEDGED'`); n != acknowledged {
		t.Errorf("%d alerts are acknowledged, %d were", n, acknowledged)
	}
	if n := u.got.of("/off"); n != 0 {
		t.Errorf("the rule that is off has %d messages", n)
	}
	if n := u.number(t.Context(), `select count(*)::int from alert where health`); n != 0 {
		t.Errorf("%d alerts are about Tocsin itself", n)
	}
	u.does(u.now, "reconcile", "--hours", "2", "--confirm", "1s")
	u.stop(cmd, log)
	for line := range strings.Lines(log.String()) {
		// A busy machine may need longer for a pass than its lease of three seconds allows.
		if strings.Contains(line, "level=ERROR") && !strings.Contains(line, "context deadline exceeded") {
			t.Errorf("the log has an error: %s", line)
		}
	}
	t.Logf("From schema %d with %d open look-backs, %d alerts and %d waiting messages: %d exchanges failed, each has one alert and one message of each rule", schema, lookBacks, alerts, waiting, failed)
}
