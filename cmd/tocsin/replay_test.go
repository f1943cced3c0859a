package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const replayedRule = "0192f0c1-0000-7000-8000-000000000900"

// replayServer responds as Tocsin does about the replays of one rule, and records the requests.
type replayServer struct {
	*httptest.Server
	looks int
	// away is how many looks a proxy answers, because the server is away.
	away   int
	state  string
	begun  map[string]any
	called []string
}

func newReplayServer(t *testing.T) *replayServer {
	t.Helper()
	s := &replayServer{state: "DONE"}
	one := func(state, ended string) string {
		return `{"id":"0192f0c1-0000-7000-8000-000000000901","state":"` + state + `","from":"2026-11-21T07:00:00Z","to":"2026-11-21T08:00:00Z","at":"2026-11-21T07:30:00Z",
			"messages":"DIGEST","matched":3,"alerts":2,"createdAt":"2026-11-22T07:00:00Z","createdBy":"ada"` + ended + `}`
	}
	over := `,"endedAt":"2026-11-22T07:01:00Z"`
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.called = append(s.called, r.Method+" "+r.URL.Path)
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		switch path := strings.TrimPrefix(r.URL.Path, "/api/v1"); {
		case path == "/status":
			_, _ = w.Write([]byte(`{"now":"2026-11-22T07:00:00Z"}`))
		case path == "/rules":
			_, _ = w.Write([]byte(`{"items":[{"id":"` + replayedRule + `","name":"Orders"}]}`))
		case strings.HasSuffix(path, "/preview"):
			_, _ = w.Write([]byte(`{"existing":1,"preview":{"from":"2026-11-21T07:00:00Z","to":"2026-11-21T08:00:00Z","coveredFrom":"2026-11-21T07:00:00Z","alerts":3,
				"newest":[{"title":"ERP refused","exchange":{"executionId":"x-1","startTime":"2026-11-21T07:59:00Z"}}]}}`))
		case strings.HasSuffix(path, "/cancel"):
			_, _ = w.Write([]byte(one("CANCELLED", over)))
		case r.Method == http.MethodPost:
			if err := json.Unmarshal(body, &s.begun); err != nil {
				t.Error(err)
			}
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(one("RUNNING", "")))
		default:
			s.looks++
			if s.looks <= s.away {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			if s.looks == 1 {
				_, _ = w.Write([]byte(`{"items":[` + one("RUNNING", `,"problem":"ClickHouse is away"`) + `]}`))
				return
			}
			_, _ = w.Write([]byte(`{"items":[` + one(s.state, over) + `]}`))
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// TestReplayIsFollowed checks the requests, and what is printed until the end.
func TestReplayIsFollowed(t *testing.T) {
	s := newReplayServer(t)
	from, to := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC), time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	command := replay{serverFlags: serverFlags{URL: s.URL}, Rule: "Orders", From: &from, To: &to, Messages: "digest"}
	var out strings.Builder
	if err := command.Run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if s.begun["messages"] != "DIGEST" || s.begun["from"] != "2026-11-21T07:00:00Z" || s.begun["to"] != "2026-11-21T08:00:00Z" {
		t.Errorf("begun %v", s.begun)
	}
	for _, part := range []string{": 3. Alerts that exist: 1. Alerts to raise: 2.", "x-1  ERP refused", "It waits: ClickHouse is away", "Exchanges that matched: 3. Alerts raised: 2."} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("missing: %q in\n%s", part, out.String())
		}
	}
	s.looks, s.state = 1, "STOPPED"
	if err := command.Run(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("a replay that was stopped ends with %v", err)
	}
}

// TestReplayCanBeTriedAndCancelled checks that a dry run begins nothing, and that a replay can be
// cancelled.
func TestReplayCanBeTriedAndCancelled(t *testing.T) {
	s := newReplayServer(t)
	var out strings.Builder
	if err := (&replay{serverFlags: serverFlags{URL: s.URL}, Rule: replayedRule, Last: days(time.Hour), Messages: "none", DryRun: true}).Run(t.Context(), &out); err != nil || s.begun != nil {
		t.Errorf("dry run: %v, began %v", err, s.begun)
	}
	if err := (&replay{serverFlags: serverFlags{URL: s.URL}, Rule: "Orders", Cancel: true}).Run(t.Context(), &out); err != nil || !strings.Contains(out.String(), "CANCELLED. Alerts raised: 2.") {
		t.Errorf("cancel: %v, %s", err, out.String())
	}
	if last := s.called[len(s.called)-1]; !strings.HasSuffix(last, "/api/v1/replays/0192f0c1-0000-7000-8000-000000000901/cancel") {
		t.Errorf("called %s", last)
	}
	if err := (&replay{serverFlags: serverFlags{URL: s.URL}, Rule: "Orders", Cancel: true}).Run(t.Context(), &out); err == nil || !strings.Contains(err.Error(), "no replay") {
		t.Errorf("cancelled what is over: %v", err)
	}
	if err := (&replay{serverFlags: serverFlags{URL: s.URL}, Rule: "Billing", Last: days(time.Hour)}).Run(t.Context(), &out); err == nil || !strings.Contains(err.Error(), "no rule") {
		t.Errorf("a rule that is not there: %v", err)
	}
	if err := (&replay{serverFlags: serverFlags{URL: s.URL}, Rule: "Orders"}).Run(t.Context(), &out); err == nil || !strings.Contains(err.Error(), "--last") {
		t.Errorf("no range: %v", err)
	}
}

// TestReplayIsFollowedWhileTheServerIsAway has a server that is updated, and one that refuses the token after a while.
func TestReplayIsFollowedWhileTheServerIsAway(t *testing.T) {
	s := newReplayServer(t)
	s.away = 2
	command := replay{serverFlags: serverFlags{URL: s.URL}, Rule: "Orders", Last: days(time.Hour), Messages: "none"}
	var out strings.Builder
	if err := command.Run(t.Context(), &out); err != nil || !strings.Contains(out.String(), "Alerts raised: 2.") {
		t.Errorf("%v, printed:\n%s", err, out.String())
	}
	ctx, interrupt := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer interrupt()
	s.looks, s.away = 0, 1000
	if err := command.Run(ctx, io.Discard); err == nil || !strings.Contains(err.Error(), "the replay continues, but is not followed any more") {
		t.Errorf("not followed: %v", err)
	}
}
