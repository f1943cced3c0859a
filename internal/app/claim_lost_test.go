package app_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/notify"
	"tocsin/notify/dispatch"
	"tocsin/notify/preset"
	"tocsin/notify/preset/presettest"
	"tocsin/notify/webhook"
)

// searched is a Jira that delays the response to the first search.
type searched struct {
	*presettest.Jira

	once sync.Once
	// first is closed when the search has been made, and closing open releases the response.
	first, open chan struct{}
}

func (s *searched) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	held := false
	if strings.HasSuffix(r.URL.Path, "/search/jql") {
		s.once.Do(func() { held = true })
	}
	if !held {
		s.Jira.ServeHTTP(w, r)
		return
	}
	answer := httptest.NewRecorder()
	s.Jira.ServeHTTP(answer, r)
	close(s.first)
	<-s.open
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// jiraHook stores a webhook for a Jira that delays the response to the first search.
func (w *world) jiraHook() (*searched, uuid.UUID) {
	w.t.Helper()
	set, err := preset.Load()
	if err != nil {
		w.t.Fatal(err)
	}
	s := &searched{Jira: presettest.NewJira(set.Get("jira")), first: make(chan struct{}), open: make(chan struct{})}
	server := httptest.NewServer(s)
	w.t.Cleanup(server.Close)
	hook, err := w.db.Webhooks().Create(w.t.Context(), tenant, notify.Webhook{
		Name: "jira", Kind: notify.KindGeneric, Preset: "jira", Enabled: true, Timeout: time.Minute, MaxConcurrent: 4,
		Inputs: map[string]string{"site": server.URL, "user": "tocsin", "token": receiverSecret, "project": "OPS"},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return s, hook.ID
}

// jiraSender returns a sender to receivers on this machine.
func (w *world) jiraSender() (notify.Sender, notify.Renderer) {
	w.t.Helper()
	set, err := preset.Load()
	if err != nil {
		w.t.Fatal(err)
	}
	sender, err := webhook.New(webhook.Options{Version: "test", Now: time.Now, AllowedNetworks: loopback(), Presets: set})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(sender.Close)
	renderer, err := webhook.NewRenderer(webhook.RendererOptions{Presets: set})
	if err != nil {
		w.t.Fatal(err)
	}
	return sender, renderer
}

// TestPausedBetweenASearchAndAnIssue pauses a process that has searched Jira for an issue, until
// another one has taken its message over and created the issue. It creates no second one when it
// continues, whether its lease has expired or was released.
func TestPausedBetweenASearchAndAnIssue(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string][]string{"expired": {"TOCSIN_LEASE=2s", "TOCSIN_HEARTBEAT_INTERVAL=5s", "TOCSIN_DEAD_AFTER=1m"}, "released": brisk()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			jira, hook := w.jiraHook()
			rule := w.rule(hook)
			w.fail(rule.ArmedSinceNS+1000, "a")
			// A replica that is considered dead loses its partitions, too.
			settings := append(settings, "TOCSIN_PARTITION_LEASE=10m")
			first := w.serve(settings...)
			w.wait("the first one searches", jira.first)
			first.stop(t)
			close(jira.open)
			w.serve(settings...)
			w.untilDelivered(1)
			first.goOn(t)
			w.untilLogged(first, `msg="outcome not settled, because the lease of the message was lost;`)
			if issues := jira.Issues(); len(issues) != 1 {
				t.Errorf("%d issues, want 1: %+v", len(issues), issues)
			}
			w.wantColumn("attempts", attemptVerdicts, "1 NOT_MADE", "2 DELIVERED")
		})
	}
}

// TestCutOffBetweenASearchAndAnIssue makes the lease renewals of a dispatcher fail while it
// searches Jira, until another dispatcher has created the issue.
func TestCutOffBetweenASearchAndAnIssue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	jira, hook := w.jiraHook()
	w.raiseFor(hook, "a")
	sender, renderer := w.jiraSender()
	lost := w.newDispatcher(dispatch.Options{Store: cutOff{w.db.Outbox()}, Lease: 2 * time.Second, Replica: "lost", Sender: sender, Renderer: renderer})
	ended := make(chan error, 1)
	go func() {
		_, err := lost.Tick(t.Context())
		ended <- err
	}()
	w.wait("the first one searches", jira.first)
	other := w.newDispatcher(dispatch.Options{Replica: "other", Sender: sender, Renderer: renderer})
	w.until("the other one takes over", func() bool {
		result, err := other.Tick(t.Context())
		return err == nil && result.Claimed == 1
	})
	w.wantColumn("statuses", statuses, "DELIVERED 1")
	close(jira.open)
	if err := await(t, "it has ended", ended); err != nil {
		t.Fatal(err)
	}
	if issues := jira.Issues(); len(issues) != 1 {
		t.Errorf("%d issues, want 1: %+v", len(issues), issues)
	}
	w.wantColumn("attempts", `select replica || ' ' || verdict from attempt_history order by attempt`, "lost NOT_MADE", "other DELIVERED")
	w.wantColumn("settlements", settlements, "DELIVERED 1")
}

// TestAnOutageDuringASearch stops Postgres for longer than a lease during a search in Jira: no
// other replica could take the message over, and after one more attempt the issue exists, once.
func TestAnOutageDuringASearch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	jira, hook := w.jiraHook()
	w.raiseFor(hook, "a")
	sender, renderer := w.jiraSender()
	const lease = 2 * time.Second
	store := &awayStore{Store: w.db.Outbox()}
	d := w.newDispatcher(dispatch.Options{Store: store, Lease: lease, Poll: 100 * time.Millisecond, Sender: sender, Renderer: renderer})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); d.Run(ctx) }()
	w.wait("it searches", jira.first)
	store.away.Store(true)
	<-time.After(3 * lease / 2)
	close(jira.open)
	<-time.After(lease / 2)
	store.away.Store(false)
	w.until("all is recorded", func() bool { return len(w.column(`select 'open' from outbox`)) == 0 })
	stop()
	await(t, "it has ended", ended)
	if issues := jira.Issues(); len(issues) != 1 {
		t.Errorf("%d issues, want 1: %+v", len(issues), issues)
	}
	w.wantColumn("attempts", attemptVerdicts, "1 NOT_MADE", "2 DELIVERED")
}
