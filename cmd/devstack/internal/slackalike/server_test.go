package slackalike

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const opsHook = "T0DEMO/B0OPS/integrationops"

// clock is a time that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// bench is a server behind a real connection.
type bench struct {
	*Server
	url   string
	clock *clock
}

func start(t *testing.T, change func(*Options)) *bench {
	t.Helper()
	c := &clock{now: time.Date(2026, 11, 21, 10, 0, 0, 123456789, time.UTC)}
	opts := Options{Rate: -1, Clock: c.read, Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&opts)
	}
	s, err := NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		web.Close()
	})
	return &bench{Server: s, url: web.URL, clock: c}
}

type answer struct {
	status int
	body   string
	header http.Header
}

// do sends one request on a connection of its own.
func (b *bench) do(t *testing.T, method, path, body string, headers ...string) (answer, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, b.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	r.Close = true
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, string(got), resp.Header}, err
}

func (b *bench) must(t *testing.T, status int, method, path, body string, headers ...string) answer {
	t.Helper()
	got, err := b.do(t, method, path, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	if got.status != status {
		t.Fatalf("%s %s answers %d %s, want %d", method, path, got.status, got.body, status)
	}
	return got
}

func (b *bench) list(t *testing.T, query string) Listing {
	t.Helper()
	var l Listing
	if err := json.Unmarshal([]byte(b.must(t, 200, "GET", "/api/messages"+query, "").body), &l); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestAnswersAsSlackDoes(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		word               string
	}{
		"accepted":          {"POST", opsHook, `{"text":"a"}`, 200, "ok"},
		"invalid payload":   {"POST", opsHook, `{`, 400, "invalid_payload"},
		"no text":           {"POST", opsHook, `{}`, 400, "no_text"},
		"invalid blocks":    {"POST", opsHook, `{"blocks":[{}]}`, 400, "invalid_blocks"},
		"too large":         {"POST", opsHook, `{"text":"` + strings.Repeat("a", maxBody) + `"}`, 400, "invalid_payload"},
		"wrong token":       {"POST", "T0DEMO/B0OPS/other", `{"text":"a"}`, 403, "invalid_token"},
		"unknown service":   {"POST", "T0DEMO/B0NONE/x", `{"text":"a"}`, 404, "no_service"},
		"unknown team":      {"POST", "T0NONE/B0OPS/x", `{"text":"a"}`, 404, "no_team"},
		"no webhook's path": {"POST", "a", `{"text":"a"}`, 404, "no_service"},
		"GET":               {"GET", opsHook, "", 405, "method_not_allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := b.must(t, c.status, c.method, "/services/"+c.path, c.body); got.body != c.word {
				t.Errorf("the body is %q, want %q", got.body, c.word)
			}
		})
	}
}

func TestRateOfAWebhook(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *Options) { o.Rate, o.Burst = 1, 3 })
	const say = `{"text":"a"}`
	for range 3 {
		b.must(t, 200, "POST", "/services/"+opsHook, say)
	}
	got := b.must(t, 429, "POST", "/services/"+opsHook, say)
	if got.body != "rate_limited" || got.header.Get("Retry-After") != "1" {
		t.Errorf("answers %q, Retry-After %q", got.body, got.header.Get("Retry-After"))
	}
	b.must(t, 200, "POST", "/services/T0DEMO/B0ORDERS/ordersteam", say)
	b.clock.move(999 * time.Millisecond)
	b.must(t, 429, "POST", "/services/"+opsHook, say)
	b.clock.move(time.Millisecond)
	b.must(t, 200, "POST", "/services/"+opsHook, say)
	b.must(t, 429, "POST", "/services/"+opsHook, say)
}

func TestListingKeepsWhatWasReceived(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	b.must(t, 200, "POST", "/services/"+opsHook, `{"text":"one"}`, "webhook-id", "msg_1", "Authorization", "Bearer secret")
	b.must(t, 200, "POST", "/services/"+opsHook, `{"text":"two"}`, "webhook-id", "msg_2")
	b.must(t, 400, "POST", "/services/"+opsHook, `{`, "webhook-id", "msg_3")
	b.must(t, 200, "POST", "/services/"+opsHook, `{"text":"one"}`, "webhook-id", "msg_1")
	b.must(t, 200, "POST", "/services/T0DEMO/B0ORDERS/ordersteam", `{"text":"one"}`, "webhook-id", "msg_1")

	l := b.list(t, "?hook="+opsHook)
	if len(l.Messages) != 4 || l.Newest != 5 {
		t.Fatalf("%d messages, newest %d", len(l.Messages), l.Newest)
	}
	if want := (Counts{Accepted: 3, Refused: 1, Duplicates: 1}); l.Counts["#integration-ops"] != want {
		t.Errorf("counts are %+v, want %+v", l.Counts["#integration-ops"], want)
	}
	first, bad, again := l.Messages[0], l.Messages[2], l.Messages[3]
	if first.Body != `{"text":"one"}` || first.WebhookID != "msg_1" || first.Delivery != 1 || !first.At.Equal(b.clock.read()) {
		t.Errorf("the first is %+v", first)
	}
	if first.Headers.Get("Authorization") != "(hidden)" || first.Headers.Get("Content-Type") != "application/json" {
		t.Errorf("its headers are %v", first.Headers)
	}
	if bad.Accepted || bad.Status != 400 || bad.Answer != "invalid_payload" || bad.Reason == "" || bad.Delivery != 0 {
		t.Errorf("the refused one is %+v", bad)
	}
	if again.Delivery != 2 || !again.Duplicate() {
		t.Errorf("the repeated one is %+v", again)
	}
	if l := b.list(t, "?since=3&accepted=true"); len(l.Messages) != 2 || l.Messages[1].Delivery != 1 {
		t.Errorf("since 3 there are %d messages", len(l.Messages))
	}
	if l := b.list(t, "?limit=1"); len(l.Messages) != 1 || l.Messages[0].ID != 5 {
		t.Error("a limit does not keep the newest")
	}
	b.must(t, 400, "GET", "/api/messages?since=x", "")
	b.must(t, 204, "DELETE", "/api/messages", "")
	if l := b.list(t, ""); len(l.Messages) != 0 || l.Newest != 5 || len(l.Counts) != 0 {
		t.Errorf("after clearing: %+v", l)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	const say = `{"text":"a"}`
	for name, c := range map[string]struct {
		fault  string
		status int // 0 for no answer
		word   string
		after  string // Retry-After
		posted bool
	}{
		"error":         {`{"kind":"error"}`, 500, "internal_server_error", "", false},
		"status":        {`{"kind":"error","status":503}`, 503, "service_unavailable", "", false},
		"rate limited":  {`{"kind":"rate_limited","seconds":30}`, 429, "rate_limited", "30", false},
		"gone":          {`{"kind":"channel_is_archived"}`, 410, "channel_is_archived", "", false},
		"no service":    {`{"kind":"no_service"}`, 404, "no_service", "", false},
		"no hooks":      {`{"kind":"no_active_hooks"}`, 404, "no_active_hooks", "", false},
		"rollup":        {`{"kind":"rollup_error"}`, 500, "rollup_error", "", false},
		"drop":          {`{"kind":"drop"}`, 0, "", "", false},
		"lose answer":   {`{"kind":"lose_answer"}`, 0, "", "", true},
		"slow":          {`{"kind":"slow","seconds":0.02}`, 200, "ok", "", true},
		"of a webhook":  {`{"hook":"` + opsHook + `","kind":"error"}`, 500, "internal_server_error", "", false},
		"of another":    {`{"hook":"T0DEMO/B0ORDERS/ordersteam","kind":"error"}`, 200, "ok", "", true},
		"for one alone": {`{"kind":"error","count":1}`, 500, "internal_server_error", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t, nil)
			b.must(t, 200, "POST", "/control/faults", c.fault)
			begun := time.Now()
			got, err := b.do(t, "POST", "/services/"+opsHook, say)
			switch {
			case c.status == 0 && err == nil:
				t.Fatalf("answers %d %s, want none", got.status, got.body)
			case c.status == 0:
			case err != nil:
				t.Fatal(err)
			case got.status != c.status || got.body != c.word || got.header.Get("Retry-After") != c.after:
				t.Errorf("answers %d %q Retry-After %q", got.status, got.body, got.header.Get("Retry-After"))
			}
			if name == "slow" && time.Since(begun) < 20*time.Millisecond {
				t.Error("a slow webhook answered at once")
			}
			if l := b.list(t, ""); len(l.Messages) != 1 || l.Messages[0].Accepted != c.posted {
				t.Errorf("recorded %d, posted %v", len(l.Messages), len(l.Messages) == 1 && l.Messages[0].Accepted)
			}
			if name != "for one alone" {
				b.must(t, 200, "DELETE", "/control/faults", "")
			}
			b.must(t, 200, "POST", "/services/"+opsHook, say)
		})
	}
}

func TestFaultsOfAWebhookGoBeforeThoseOfAll(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	b.must(t, 200, "POST", "/control/faults", `{"kind":"no_team"}`)
	b.must(t, 200, "POST", "/control/faults", `{"hook":"`+opsHook+`","kind":"error","count":2}`)
	for _, want := range []int{500, 500, 404} {
		b.must(t, want, "POST", "/services/"+opsHook, `{"text":"a"}`)
	}
	b.must(t, 200, "DELETE", "/control/faults?hook=", "")
	b.must(t, 200, "POST", "/services/"+opsHook, `{"text":"a"}`)
	for _, bad := range []string{`{"kind":"sulk"}`, `{"kind":"error","status":200}`, `{"kind":"slow","seconds":-1}`, `{"kind":"drop","count":-1}`, `{"knd":"drop"}`, `{`} {
		b.must(t, 400, "POST", "/control/faults", bad)
	}
}

func TestHangEndsWithTheSenderOrTheServer(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	b.must(t, 200, "POST", "/control/faults", `{"kind":"hang"}`)

	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+"/services/"+opsHook, &cancelAtEOF{strings.NewReader(`{"text":"a"}`), cancel})
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := http.DefaultClient.Do(r); !errors.Is(err, context.Canceled) {
		_ = resp.Body.Close()
		t.Fatalf("the sender that left got %v, error %v", resp, err)
	}

	done := make(chan error)
	go func() {
		_, err := b.do(t, "POST", "/services/"+opsHook, `{"text":"b"}`)
		done <- err
	}()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil {
		t.Error("a hung request was answered when the server closed")
	}
}

// cancelAtEOF cancels a request once its body is sent.
type cancelAtEOF struct {
	io.Reader
	cancel func()
}

func (c *cancelAtEOF) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if err == io.EOF {
		c.cancel()
	}
	return n, err
}

func TestHooksAreAddedAndChecked(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	b.must(t, 404, "POST", "/services/T1/B1/x1", `{"text":"a"}`)
	b.must(t, 200, "POST", "/control/hooks", `{"path":"T1/B1/x1","channel":"#new","app":"Test"}`)
	b.must(t, 200, "POST", "/services/T1/B1/x1", `{"text":"a"}`)
	for _, bad := range []string{`{"path":"T1/B1","channel":"#a"}`, `{"path":"../B1/x","channel":"#a"}`, `{"path":"T1/B1/x","channel":"a"}`} {
		b.must(t, 400, "POST", "/control/hooks", bad)
	}
	if got := b.must(t, 200, "GET", "/control/hooks", "").body; !strings.Contains(got, `"#new"`) {
		t.Errorf("the webhooks are %s", got)
	}
	if _, err := NewServer(Options{Logger: slog.New(slog.DiscardHandler), Hooks: []Hook{{Path: "x", Channel: "#a"}}}); !errors.Is(err, errHook) {
		t.Errorf("a nonsensical webhook gives %v", err)
	}
	if _, err := NewServer(Options{}); err == nil {
		t.Error("a server without logger is made")
	}
}

func TestOtherOriginsCannotMisbehave(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	b.must(t, 403, "POST", "/control/faults", `{"kind":"drop"}`, "Sec-Fetch-Site", "cross-site")
	b.must(t, 403, "DELETE", "/api/messages", "", "Origin", "https://evil.example")
	b.must(t, 200, "POST", "/services/"+opsHook, `{"text":"a"}`, "Origin", "https://evil.example")
}

func TestJournalOutlivesTheServer(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "made", "journal.jsonl")
	keep := func(o *Options) { o.Journal, o.Kept = path, 3 }
	a := start(t, keep)
	for _, id := range []string{"m1", "m2", "m3", "m4"} {
		a.must(t, 200, "POST", "/services/"+opsHook, `{"text":"<ü>"}`, "webhook-id", id)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	// A crash cuts the last line off.
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(`{"id":5,"at":"2026-`); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}

	var log bytes.Buffer
	b := start(t, func(o *Options) {
		keep(o)
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	if !strings.Contains(log.String(), "unreadable") {
		t.Errorf("the cut line is not reported: %s", &log)
	}
	b.must(t, 200, "POST", "/services/"+opsHook, `{"text":"b"}`, "webhook-id", "m4")
	l := b.list(t, "")
	if len(l.Messages) != 3 || l.Messages[0].WebhookID != "m3" || l.Messages[0].Body != `{"text":"<ü>"}` {
		t.Fatalf("%d messages after the restart", len(l.Messages))
	}
	if last := l.Messages[2]; last.ID != 5 || last.Delivery != 2 {
		t.Errorf("the message after the restart is %d, delivery %d", last.ID, last.Delivery)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(written, []byte("\n")); lines != 4 {
		t.Errorf("the journal has %d lines, want the 3 kept and the new one", lines)
	}

	c := start(t, keep)
	c.must(t, 204, "DELETE", "/api/messages", "")
	c.must(t, 200, "POST", "/services/"+opsHook, `{"text":"c"}`)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if l := start(t, keep).list(t, ""); len(l.Messages) != 1 || l.Messages[0].Body != `{"text":"c"}` {
		t.Errorf("after clearing, the journal holds %d messages", len(l.Messages))
	}
}

func TestPageShowsMessages(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	const hostile = `{"text":"fallback <script>","username":"<b>App","blocks":[{"type":"header","text":{"type":"plain_text","text":"<img src=x onerror=1>"}},` +
		`{"type":"section","text":{"type":"mrkdwn","text":"*bold* <javascript:x|y>"},"fields":[{"type":"mrkdwn","text":"&lt;field&gt;"}]},` +
		`{"type":"actions","elements":[{"type":"button","text":{"type":"plain_text","text":"go"},"url":"javascript:alert(1)"}]}],` +
		`"attachments":[{"color":"#36a64f\" onload=\"x","title":"</div>","text":"a"},{"color":"#36a64f","fields":[{"title":"<i>","value":"v"}]}]}`
	b.must(t, 200, "POST", "/services/"+opsHook, hostile, "webhook-id", `"><script>`)
	b.must(t, 200, "POST", "/services/"+opsHook, hostile, "webhook-id", `"><script>`)
	b.must(t, 400, "POST", "/services/"+opsHook, `{"text":"</pre><script>`)

	page := b.must(t, 200, "GET", "/?view=%23integration-ops", "")
	for _, want := range []string{"<b>bold</b>", "&lt;field&gt;", "&lt;img src=x", "delivery 2", `fill="#36a64f"`, `id="m1"`, `id="m2"`, "1 duplicate<"} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	refused := b.must(t, 200, "GET", "/?view=refused", "")
	if !strings.Contains(refused.body, "400 invalid_payload") || !strings.Contains(refused.body, `id="m3"`) {
		t.Error("the refused request is not shown")
	}
	for _, body := range []string{page.body, refused.body} {
		for _, bad := range []string{"<script>", "<img", "onload=\"x", `href="javascript`} {
			if strings.Contains(body, bad) {
				t.Errorf("the page contains %s", bad)
			}
		}
	}
	if policy := page.header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %q", policy)
	}
	for _, asset := range []string{"style.css", "app.js", "icon.svg"} {
		if got := b.must(t, 200, "GET", "/assets/"+asset, ""); strings.Contains(got.body, "https://") {
			t.Errorf("%s names another host", asset)
		}
	}
	b.must(t, 404, "GET", "/elsewhere", "")
}

func TestPageGoesBack(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	for range pageMessages + 5 {
		b.must(t, 200, "POST", "/services/"+opsHook, `{"text":"a"}`)
	}
	page := b.must(t, 200, "GET", "/", "").body
	if strings.Contains(page, `id="m5"`) || !strings.Contains(page, `id="m6"`) || !strings.Contains(page, "before=6") {
		t.Error("the first page does not begin with message 6")
	}
	older := b.must(t, 200, "GET", "/?before=6", "").body
	if !strings.Contains(older, `id="m5"`) || strings.Contains(older, `id="m6"`) || strings.Contains(older, "Older messages") {
		t.Error("the older page does not end with message 5")
	}
}

func TestEventsTellOfNewMessages(t *testing.T) {
	t.Parallel()
	b := start(t, nil)
	b.must(t, 200, "POST", "/services/"+opsHook, `{"text":"one"}`)
	next := b.events(t, "/events?view=%23integration-ops&after=0", "")

	if id, u := next(); id != "1" || len(u.Messages) != 1 || !strings.Contains(u.Messages[0], "one") {
		t.Fatalf("the first event is %s with %d messages", id, len(u.Messages))
	}
	b.must(t, 200, "POST", "/services/T0DEMO/B0ORDERS/ordersteam", `{"text":"elsewhere"}`)
	if id, u := next(); id != "2" || len(u.Messages) != 0 || u.Counts["#orders"].Accepted != 1 {
		t.Errorf("a message of another channel is event %s %+v", id, u)
	}
	b.must(t, 200, "POST", "/services/"+opsHook, `{"text":"two"}`)
	if id, u := next(); id != "3" || len(u.Messages) != 1 || !strings.Contains(u.Messages[0], "two") {
		t.Errorf("the second message is event %s %+v", id, u)
	}
	b.must(t, 200, "POST", "/control/faults", `{"kind":"slow"}`)
	if id, u := next(); id != "3" || len(u.Messages) != 0 || len(u.Faults) != 1 {
		t.Errorf("a fault is event %s %+v", id, u)
	}
	resumed := b.events(t, "/events?view=%23integration-ops&after=0", "1")
	if id, u := resumed(); id != "3" || len(u.Messages) != 1 {
		t.Errorf("a page that reconnects gets event %s with %d messages", id, len(u.Messages))
	}
}

// events returns a function that reads the next event of the stream.
func (b *bench) events(t *testing.T, path, last string) func() (string, update) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Last-Event-ID", last)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	return func() (id string, u update) {
		t.Helper()
		for lines.Scan() && lines.Text() != "" {
			if value, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				id = value
			}
			if value, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				if err := json.Unmarshal([]byte(value), &u); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
		return id, u
	}
}
