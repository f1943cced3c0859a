package api_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/api"
)

// page is a client of the stream, over a real connection.
type page struct {
	t      *testing.T
	answer *http.Response
	lines  *bufio.Scanner
}

// serverTimeout limits ordinary requests; it is far shorter than a stream lasts.
const serverTimeout = 400 * time.Millisecond

// serve listens until the test and its pages have ended, and returns its address.
func (b *bench) serve() string { return b.serveWithin(serverTimeout) }

// serveWithin is serve with another timeout.
func (b *bench) serveWithin(timeout time.Duration) string {
	b.t.Helper()
	server := httptest.NewUnstartedServer(b.server)
	server.Config.ReadTimeout, server.Config.WriteTimeout = timeout, timeout
	server.Start()
	b.t.Cleanup(server.Close)
	return server.URL
}

func (b *bench) open(address, lastID string) *page {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, address+"/api/v1/events", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = answer.Body.Close() })
	return &page{t: b.t, answer: answer, lines: bufio.NewScanner(answer.Body)}
}

// next returns the lines of the next event or comment, joined by bars.
func (p *page) next() string {
	p.t.Helper()
	var got []string
	for p.lines.Scan() {
		if p.lines.Text() == "" {
			return strings.Join(got, "|")
		}
		got = append(got, p.lines.Text())
	}
	if p.lines.Err() != nil {
		p.t.Fatal(p.lines.Err())
	}
	return "end"
}

func (p *page) want(want string) {
	p.t.Helper()
	if got := p.next(); got != want {
		p.t.Fatalf("the stream says %q, want %q", got, want)
	}
}

// began is the beginning of a stream with the default heartbeat.
const began = `retry: 2000|event: beat|data: {"intervalSeconds":15}`

func TestEventsReachEveryOpenPage(t *testing.T) {
	b := newBench(t, func(o *api.Options) { o.InboxInterval = 5 * time.Millisecond })
	address := b.serve()
	const event = `|event: alerts|data: {"counts":{"acknowledged":0,"firing":1,"pending":0,"resolved":0}}`

	one, other := b.open(address, ""), b.open(address, "1")
	if kind := one.answer.Header.Get("Content-Type"); kind != "text/event-stream" || one.answer.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %s", one.answer.StatusCode, kind)
	}
	one.want(began)
	one.want("id: 1" + event)
	other.want(began)
	b.beat.set("2")
	one.want("id: 2" + event)
	other.want("id: 2" + event) // and not 1, which it has seen
	b.beat.set("x\ny")
	one.want("id: xy" + event)

	if err := b.server.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	one.want("end")
	if refused := b.open(address, "").answer; refused.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("status %d after shutdown", refused.StatusCode)
	}
}

func TestEventsNameWhatChangedSinceTheEventBefore(t *testing.T) {
	b := newBench(t, func(o *api.Options) { o.InboxInterval = 5 * time.Millisecond })
	address := b.serve()
	const counts = `{"acknowledged":0,"firing":1,"pending":0,"resolved":0}`
	id := uuid.MustParse("00000000-0000-7000-8000-000000000001")

	one := b.open(address, "")
	one.want(began)
	one.want(`id: 1|event: alerts|data: {"counts":` + counts + `}`)
	b.beat.set("2", id)
	one.want(`id: 2|event: alerts|data: {"changed":["` + id.String() + `"],"counts":` + counts + `}`)
	// What changed before a page connected is part of what the page reads first.
	late := b.open(address, "1")
	late.want(began)
	late.want(`id: 2|event: alerts|data: {"counts":` + counts + `}`)
	b.beat.set("3")
	one.want(`id: 3|event: alerts|data: {"counts":` + counts + `}`)
}

func TestEventsBeatWhileNothingHappens(t *testing.T) {
	const heartbeat = 5 * time.Millisecond
	b := newBench(t, func(o *api.Options) { o.Heartbeat = heartbeat })
	address := b.serve()
	p := b.open(address, "1")
	const beat = `event: beat|data: {"intervalSeconds":0.005}`
	p.want("retry: 2000|" + beat)
	for range 3 * serverTimeout / heartbeat {
		p.want(beat)
	}
}

func TestBodiesAreRead(t *testing.T) {
	b := newBench(t)
	const path = "/api/v1/rules"
	p := b.do("POST", path, strings.Replace(ruleBody, "{", `{"perExchangeLingerSeconds":30,`, 1)).problem(400, "invalid")
	if len(p.Errors) != 1 || p.Errors[0].Field != "perExchangeLingerSeconds" || p.Errors[0].Code != "unknown_field" {
		t.Errorf("errors %+v", p.Errors)
	}
	b.do("POST", path, "", "Content-Type", "application/json").problem(400, "invalid")
	b.do("POST", path, "", "Content-Type", "text/plain").problem(415, "unsupported_media_type")
	b.do("POST", path, ruleBody, "Content-Type", "text/plain").problem(415, "unsupported_media_type")
	b.do("POST", path, ruleBody, "Content-Type", "application/jsonx").problem(415, "unsupported_media_type")
	b.do("POST", path, ruleBody, "Content-Type", "application/json; charset=latin1").problem(415, "unsupported_media_type")
	b.do("POST", path, ruleBody, "Content-Encoding", "gzip").problem(415, "unsupported_media_type")
	b.do("POST", path, ruleBody, "Content-Type", "application/json; charset=UTF-8").want(201)
	b.do("POST", path, `{"name":"`+strings.Repeat("a", 1<<20)+`"}`).problem(413, "too_large")
	b.do("POST", path, ruleBody+strings.Repeat(" ", 1<<20-len(ruleBody))).want(201)
	b.do("POST", path, ruleBody+strings.Repeat(" ", 1<<20-len(ruleBody)+1)).problem(413, "too_large")
}
