package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tocsin/internal/access"
	"tocsin/internal/app"
	"tocsin/rules"
)

// load is 200 clients of one server, and the responses they received.
type load struct {
	base, token string
	client      *http.Client
	// alerts are distributed by next, each to one client.
	alerts []string
	next   atomic.Int64
	shared []string

	mu    sync.Mutex
	took  map[string][]time.Duration
	acked []string
	made  []string
	// wins counts the successful edits of a shared rule by rule and version.
	wins map[string]int
	lost int
	bad  []string
}

const loadClients = 200

// do makes a request, records how long it took, and returns status, tag and body.
func (l *load) do(kind, method, path string, body any, tag string) (status int, etag string, answer map[string]any) {
	text, err := json.Marshal(body)
	if err != nil {
		l.fault("%s: %v", kind, err)
		return 0, "", nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, l.base+path, bytes.NewReader(text))
	if err != nil {
		l.fault("%s: %v", kind, err)
		return 0, "", nil
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+l.token)
	if tag != "" {
		req.Header.Set("If-Match", tag)
	}
	began := time.Now()
	got, err := l.client.Do(req)
	if err != nil {
		l.fault("%s: %v", kind, err)
		return 0, "", nil
	}
	content, err := io.ReadAll(got.Body)
	took := time.Since(began)
	_ = got.Body.Close()
	if err != nil || got.StatusCode >= http.StatusBadRequest && got.StatusCode != http.StatusPreconditionFailed {
		l.fault("%s: %d %v %.200s", kind, got.StatusCode, err, content)
	}
	if err := json.Unmarshal(content, &answer); err != nil {
		l.fault("%s: %v", kind, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took[kind] = append(l.took[kind], took)
	return got.StatusCode, got.Header.Get("ETag"), answer
}

func (l *load) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bad = append(l.bad, fmt.Sprintf(format, args...))
}

// run lets every client make steps until the time is over.
func (l *load) run(length time.Duration, step func(client, i int)) {
	over := time.Now().Add(length)
	var all sync.WaitGroup
	for client := range loadClients {
		all.Go(func() {
			for i := client; time.Now().Before(over); i++ {
				step(client, i)
			}
		})
	}
	all.Wait()
}

func (l *load) mixed(client, i int) {
	const lists, acknowledgements, creations, all = 4, 7, 9, 10
	switch n := i % all; {
	case n < lists:
		l.do("list", http.MethodGet, "/api/v1/alerts?limit=50&state=FIRING", nil, "")
	case n < acknowledgements:
		at := l.next.Add(1) - 1
		if at >= int64(len(l.alerts)) {
			l.do("list", http.MethodGet, "/api/v1/alerts?limit=50", nil, "")
			return
		}
		if status, _, _ := l.do("acknowledge", http.MethodPost, "/api/v1/alerts/"+l.alerts[at]+"/acknowledge", map[string]any{}, ""); status == http.StatusOK {
			l.mu.Lock()
			l.acked = append(l.acked, l.alerts[at])
			l.mu.Unlock()
		}
	case n < creations:
		name := fmt.Sprintf("made %d %d", client, i)
		body := map[string]any{"name": name, "enabled": false, "fireMode": "PER_EXCHANGE", "severity": "INFO", "scope": map[string]any{"routes": []string{"none"}}}
		if status, _, _ := l.do("create", http.MethodPost, "/api/v1/rules", body, ""); status == http.StatusCreated {
			l.mu.Lock()
			l.made = append(l.made, name)
			l.mu.Unlock()
		}
	default:
		l.edit(l.shared[i/all%len(l.shared)], fmt.Sprintf("by %d %d", client, i))
	}
}

// edit edits a rule that others edit, too.
func (l *load) edit(id, message string) {
	_, tag, rule := l.do("read", http.MethodGet, "/api/v1/rules/"+id, nil, "")
	status, etag, _ := l.do("edit", http.MethodPut, "/api/v1/rules/"+id, map[string]any{
		"name": rule["name"], "enabled": false, "fireMode": "PER_EXCHANGE", "severity": "INFO", "messageTemplate": message,
	}, tag)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch status {
	case http.StatusOK:
		l.wins[id+" "+etag]++
	case http.StatusPreconditionFailed:
		l.lost++
	}
}

// report writes requests per second and quantiles of each kind.
func (l *load) report(b *testing.B, length time.Duration, kinds ...string) {
	b.Helper()
	for _, kind := range kinds {
		took := l.took[kind]
		if len(took) == 0 {
			b.Errorf("no %s was made", kind)
			continue
		}
		slices.Sort(took)
		at := func(q float64) float64 { return float64(took[int(q*float64(len(took)-1))].Microseconds()) / 1000 }
		b.ReportMetric(float64(len(took))/length.Seconds(), kind+"/s")
		b.ReportMetric(at(0.5), kind+"-p50-ms")
		b.ReportMetric(at(0.99), kind+"-p99-ms")
	}
}

// BenchmarkTwoHundredClients has 200 clients that list and acknowledge alerts, and create and edit
// rules, on the real server and engines, for TOCSIN_BENCH_FOR (10 s by default), and request
// /healthz for a sixth of that as a reference. No response is a 5xx, and nothing that was confirmed
// is lost.
func BenchmarkTwoHundredClients(b *testing.B) {
	length := 10 * time.Second
	if text := os.Getenv("TOCSIN_BENCH_FOR"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			b.Fatal(err)
		}
	}
	w := newWorld(b)
	base, _ := w.guarded(func(o *app.Options) { o.Roles, o.Logger = app.Roles(), slog.New(slog.DiscardHandler) })
	l := &load{
		base: base, token: newCaller(b, base).signIn(adminEmail, adminPassword).withToken("load", access.Editor).token,
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: loadClients}},
		took:   map[string][]time.Duration{}, wins: map[string]int{},
	}
	b.Cleanup(l.client.CloseIdleConnections)
	w.rule()
	for i := range 10 {
		l.shared = append(l.shared, w.ruleOf(rules.Definition{Name: "shared " + strconv.Itoa(i)}).ID.String())
	}
	w.exec(`update rule set enabled = false where name like 'shared%'`)
	// More than are acknowledged in a minute.
	const alerts, page = 20_000, 5_000
	for at := 0; at < alerts; at += page {
		ids := make([]string, page)
		for i := range ids {
			ids[i] = fmt.Sprintf("x%06d", at+i)
		}
		w.fail(w.ch.Now(b), ids...)
	}
	w.until("all alerts are there", func() bool { return w.column(`select count(*)::text from alert`)[0] == strconv.Itoa(alerts) })
	w.exec(`analyze`)
	l.alerts = w.column(`select alert_id::text from alert order by alert_id`)

	for b.Loop() {
		l.run(length/6, func(int, int) { l.do("healthz", http.MethodGet, "/healthz", nil, "") })
		l.run(length, l.mixed)
	}
	l.report(b, length/6, "healthz")
	l.report(b, length, "list", "acknowledge", "create", "read", "edit")
	for _, bad := range l.bad[:min(len(l.bad), 10)] {
		b.Error(bad)
	}
	w.holdLoad(b, l)
}

// holdLoad compares the responses that clients received with what is stored.
func (w *world) holdLoad(b *testing.B, l *load) {
	b.Helper()
	slices.Sort(l.acked)
	if stored := w.column(`select alert_id::text from alert where state = 'ACKNOWLEDGED' order by alert_id::text collate "C"`); !slices.Equal(stored, l.acked) {
		b.Errorf("%d alerts are acknowledged, %d were said to be", len(stored), len(l.acked))
	}
	slices.Sort(l.made)
	if stored := w.column(`select name from rule where name like 'made %' order by name collate "C"`); !slices.Equal(stored, l.made) {
		b.Errorf("%d rules exist, %d were reported as created", len(stored), len(l.made))
	}
	edits := map[string]int{}
	for version, wins := range l.wins {
		if wins != 1 {
			b.Errorf("%d edits made version %s", wins, version)
		}
		edits[version[:len(l.shared[0])]]++
	}
	for _, id := range l.shared {
		if version := w.column(`select version::text from rule where rule_id = $1::text::uuid`, id)[0]; version != strconv.Itoa(edits[id]+1) {
			b.Errorf("a shared rule is of version %s after %d edits", version, edits[id])
		}
	}
	if l.lost == 0 || len(l.wins) == 0 {
		b.Errorf("edits never met: %d won, %d refused", len(l.wins), l.lost)
	}
	b.ReportMetric(float64(l.lost), "edits-refused")
}
