package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tocsin/internal/app"
	"tocsin/internal/pgtest"
	"tocsin/internal/postgres"
	"tocsin/internal/programtest"
)

func TestMain(m *testing.M) {
	programtest.Parallel(8)
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		programtest.Remove()
		os.Exit(code)
	}))
}

// log collects the log of a replica.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// replica runs the whole application in this process, with some options changed.
func (w *world) replica(change ...func(*app.Options)) (address string, logged *log) {
	w.t.Helper()
	w.giveUp()
	logged = &log{}
	o := app.Options{
		PostgresURL: w.pgURL, ClickHouseURL: w.ch.URL, EncryptionKey: key, Listen: "127.0.0.1:0", OutgoingAllow: loopback(),
		Access: app.AccessOptions{Mode: app.AccessOpen}, TickInterval: 500 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, f := range change {
		f(&o)
	}
	a, err := app.New(w.t.Context(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := await(w.t, "it has ended", ended); err != nil {
			w.t.Errorf("Run: %v", err)
		}
		if err := a.Close(context.Background()); err != nil {
			w.t.Errorf("Close: %v", err)
		}
	})
	return "http://" + a.Addr(), logged
}

// call makes a request and returns status and decoded body.
func call(t *testing.T, method, url string, body any) (int, map[string]any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // read to its end below
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	decoded := map[string]any{}
	if len(content) > 0 {
		if err := json.Unmarshal(content, &decoded); err != nil {
			t.Fatalf("%s %s: %v in %q", method, url, err, content)
		}
	}
	return answer.StatusCode, decoded
}

func TestFromAFailureToAMessageOverTheAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base, logged := w.replica()
	const secret = "T000/B000/very-secret-token"
	status, hook := call(t, http.MethodPost, base+"/api/v1/webhooks", map[string]any{
		"name": "ops", "kind": "generic", "url": w.receiver.url + "/" + secret,
	})
	if status != http.StatusCreated {
		t.Fatalf("create webhook: %d %v", status, hook)
	}
	rule := map[string]any{
		"name": "failures", "fireMode": "PER_EXCHANGE", "severity": "CRITICAL", "webhookIds": []any{hook["id"]},
	}
	for field, message := range map[string]string{
		"reNotifyMinutes":    "Rules about single exchanges send no reminders; leave it out",
		"forDurationSeconds": "Rules about single exchanges fire at once; leave it out",
	} {
		bad := map[string]any{field: 60}
		maps.Copy(bad, rule)
		status, problem := call(t, http.MethodPost, base+"/api/v1/rules", bad)
		text, _ := json.Marshal(problem["errors"])
		if status != http.StatusBadRequest || !strings.Contains(string(text), message) || !strings.Contains(string(text), field) {
			t.Errorf("%s: 60 gave %d %s", field, status, text)
		}
	}
	if status, answer := call(t, http.MethodPost, base+"/api/v1/rules", rule); status != http.StatusCreated {
		t.Fatalf("create rule: %d %v", status, answer)
	}
	w.fail(w.ch.Now(t), "a")
	w.until("the message arrives", func() bool { return len(w.receiver.received()) == 1 })
	w.until("the notification is settled", func() bool { return len(w.column(unsettledOutbox)) == 0 })

	_, list := call(t, http.MethodGet, base+"/api/v1/alerts?state=FIRING", nil)
	items, _ := list["items"].([]any)
	if len(items) != 1 {
		t.Fatalf("alerts: %v", list)
	}
	id, _ := items[0].(map[string]any)["id"].(string)
	if status, alert := call(t, http.MethodPost, base+"/api/v1/alerts/"+id+"/resolve", nil); status != http.StatusOK || alert["state"] != "RESOLVED" {
		t.Errorf("resolve: %d %v", status, alert)
	}
	if status, problem := call(t, http.MethodPost, base+"/api/v1/alerts/"+id+"/acknowledge", nil); status != http.StatusConflict {
		t.Errorf("acknowledge what is resolved: %d %v", status, problem)
	}
	if status, problem := call(t, http.MethodDelete, base+"/api/v1/webhooks/"+hook["id"].(string), nil); status != http.StatusConflict {
		t.Errorf("delete a bound webhook: %d %v", status, problem)
	}
	for what, text := range map[string]string{"log": logged.String(), "database": strings.Join(w.column(`select w::text from webhook w`), "")} {
		if strings.Contains(text, "very-secret") {
			t.Errorf("the %s shows the webhook's URL", what)
		}
	}
}

func TestNewRefusesADatabaseThatIsNotMigrated(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	conn := pgtest.Conn(t, url)
	if _, err := conn.Exec(t.Context(), `drop table goose_db_version`); err != nil {
		t.Fatal(err)
	}
	_, err := app.New(t.Context(), app.Options{
		PostgresURL: url, ClickHouseURL: "http://127.0.0.1:1", EncryptionKey: key, Listen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler),
	})
	if err == nil || !strings.Contains(err.Error(), "tocsin migrate") {
		t.Errorf("err = %v, want it to name the remedy", err)
	}
}

// TestANewerSchemaSaysWhoWorksWithIt starts a program on a database that a later version has
// migrated.
func TestANewerSchemaSaysWhoWorksWithIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`insert into goose_db_version (version_id, is_applied) values (99999, true)`)
	if err := postgres.Migrate(t.Context(), w.pgURL, slog.New(slog.DiscardHandler)); err != nil {
		t.Errorf("Migrate = %v, want nothing to do", err)
	}
	open := func() (logged string, err error) {
		var text log
		opened, err := app.New(t.Context(), app.Options{
			PostgresURL: w.pgURL, ClickHouseURL: w.ch.URL, EncryptionKey: key, Listen: "127.0.0.1:0", Logger: slog.New(slog.NewTextHandler(&text, nil)),
		})
		if err == nil {
			err = opened.Close(context.WithoutCancel(t.Context()))
		}
		return text.String(), err
	}
	if logged, err := open(); err != nil || !strings.Contains(logged, "level=WARN") || !strings.Contains(logged, "schema=99999") {
		t.Errorf("a schema that works with it: %v, %s", err, logged)
	}
	w.exec(`update schema_compatibility set least = 99999`)
	if _, err := open(); err == nil || !strings.Contains(err.Error(), "run a newer program") {
		t.Errorf("a schema that does not: %v", err)
	}
	if out, code := w.command("users", "list"); code != 1 || !strings.Contains(out, "run a newer program") {
		t.Errorf("a command: exit %d, %s", code, out)
	}
}

func TestNewNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	_, err := app.New(t.Context(), app.Options{Logger: slog.New(slog.DiscardHandler), Roles: []app.Role{"cook"}})
	for _, want := range []string{"TOCSIN_POSTGRES_URL", "TOCSIN_CLICKHOUSE_URL", "TOCSIN_ENCRYPTION_KEY", `"cook"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("err = %v, want it to name %s", err, want)
		}
	}
}

// TestEveryReplicaIsWatched makes the requests of probes and Prometheus to replicas that do not
// serve the API.
func TestEveryReplicaIsWatched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base, _ := w.replica(func(o *app.Options) { o.Roles = []app.Role{app.RoleEvaluate, app.RoleDispatch} })
	for path, says := range map[string]string{"/healthz": `"ok"`, "/readyz": `"ready"`, "/metrics": "tocsin_outbox_depth 0", "/api/v1/rules": "not_found"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || !strings.Contains(string(body), says) {
			t.Errorf("%s: %d %s, %v; want %s", path, answer.StatusCode, body, err, says)
		}
	}
}

// TestAReplicaIsNotReadyWhilePostgresAcceptsNoWrites makes the database read-only under a running replica, as a failover to
// a server that is not promoted does, and writable again.
func TestAReplicaIsNotReadyWhilePostgresAcceptsNoWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base, _ := w.replica(func(o *app.Options) { o.Roles = []app.Role{app.RoleAPI} })
	ready := func() string {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/readyz", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close() //nolint:errcheck // read completely
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(answer.StatusCode, " ", strings.TrimSpace(string(body)))
	}
	// becomes sets what new sessions may do, and ends those that there are.
	becomes := func(readOnly string) {
		w.exec(`do $$ begin execute format('alter database %I set default_transaction_read_only = ` + readOnly + `', current_database()); end $$`)
		w.exec(`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`)
	}
	if got := ready(); got != `200 {"status":"ready","missing":[]}` {
		t.Fatal(got)
	}
	becomes("on")
	w.until("it is not ready", func() bool {
		return ready() == `503 {"status":"not ready","missing":["postgres"],"reasons":{"postgres":"Accepts no writes: it is a standby, or read-only; name every server in TOCSIN_POSTGRES_URL and add target_session_attrs=read-write"}}`
	})
	becomes("off")
	w.until("it is ready again", func() bool { return ready() == `200 {"status":"ready","missing":[]}` })
}
