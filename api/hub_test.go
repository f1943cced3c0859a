package api

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tocsin/alerts"
)

// counter is the inbox of acme, which changes on request and counts how often it is read. The inbox
// of any other tenant never changes.
type counter struct {
	state, looks atomic.Int64
	broken       atomic.Bool
}

func (c *counter) InboxState(_ context.Context, tenant string) (InboxState, error) {
	if tenant != "acme" {
		return InboxState{Fingerprint: "quiet"}, nil
	}
	c.looks.Add(1)
	if c.broken.Load() {
		return InboxState{}, errors.New("no connection")
	}
	n := c.state.Load()
	return InboxState{Fingerprint: strconv.FormatInt(n, 10), Counts: alerts.Counts{Firing: n}}, nil
}

func testHub(c *counter, limit int) *hub {
	return newHub(c, slog.New(slog.DiscardHandler), time.Second, limit)
}

func listening(t *testing.T, h *hub, tenant string) *listener {
	t.Helper()
	l, err := h.listen(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// heard returns the ids that are queued for l.
func heard(l *listener) (ids []string) {
	for {
		select {
		case ev, open := <-l.events:
			if !open {
				return append(ids, "end")
			}
			ids = append(ids, ev.id)
		default:
			return ids
		}
	}
}

func wantHeard(t *testing.T, l *listener, want ...string) {
	t.Helper()
	synctest.Wait()
	got := heard(l)
	if len(got) != len(want) {
		t.Fatalf("heard %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("heard %v, want %v", got, want)
		}
	}
}

// pass waits for d in the time of the bubble.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestHubLooksOnlyWhileSomebodyListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counter{}
		h := testHub(c, 10)
		pass(time.Minute)
		if n := c.looks.Load(); n != 0 {
			t.Fatalf("looked %d times at nobody's request", n)
		}
		first, second := listening(t, h, "acme"), listening(t, h, "acme")
		pass(10*time.Second + time.Millisecond)
		if n := c.looks.Load(); n != 11 {
			t.Errorf("looked %d times in 10 s for two pages, want 11", n)
		}
		h.leave(first)
		h.leave(second)
		h.leave(second)
		seen := c.looks.Load()
		pass(time.Minute)
		if c.looks.Load() != seen {
			t.Error("looked although nobody listens")
		}
		if len(h.topics) != 0 || h.open != 0 {
			t.Errorf("%d topics and %d streams are left", len(h.topics), h.open)
		}
	})
}

func TestHubSendsNewsOnceToEveryPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counter{}
		h := testHub(c, 10)
		early, foreign := listening(t, h, "acme"), listening(t, h, "other")
		wantHeard(t, early, "0")
		wantHeard(t, foreign, "quiet")
		pass(5 * time.Second)
		wantHeard(t, early)

		c.state.Store(1)
		pass(time.Second)
		late := listening(t, h, "acme")
		wantHeard(t, early, "1")
		wantHeard(t, late, "1")

		c.state.Store(2)
		h.nudge("acme")
		h.nudge("acme")
		h.nudge("nobody")
		wantHeard(t, early, "2")
		wantHeard(t, late, "2")

		c.broken.Store(true)
		pass(3 * time.Second)
		c.state.Store(3)
		c.broken.Store(false)
		pass(time.Second)
		wantHeard(t, early, "3")
		if err := h.shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantHeard(t, early, "end")
		wantHeard(t, foreign, "end")
	})
}

func TestHubCutsOffWhoIsTooSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counter{}
		h := testHub(c, 10)
		slow, quick := listening(t, h, "acme"), listening(t, h, "acme")
		for i := range int64(streamBuffer + 1) {
			c.state.Store(i)
			h.nudge("acme")
			synctest.Wait()
			if got := heard(quick); len(got) != 1 {
				t.Fatalf("the quick page heard %v", got)
			}
		}
		if got := heard(slow); len(got) != streamBuffer+1 || got[streamBuffer] != "end" {
			t.Errorf("the slow page heard %v, want %d events and the end", got, streamBuffer)
		}
		h.leave(slow)
		h.leave(quick)
	})
}

func TestHubRefusesWhatItCannotServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHub(&counter{}, 1)
		only := listening(t, h, "acme")
		if _, err := h.listen(t.Context(), "acme"); !errors.Is(err, errHubFull) {
			t.Errorf("error %v beyond the bound", err)
		}
		if err := h.shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := h.listen(t.Context(), "acme"); !errors.Is(err, errHubClosed) {
			t.Errorf("error %v after shutdown", err)
		}
		h.leave(only)
	})
}

// stuck is an inbox whose read never ends, even if its context does.
type stuck struct{ release chan struct{} }

func (s stuck) InboxState(context.Context, string) (InboxState, error) {
	<-s.release
	return InboxState{Fingerprint: "1"}, nil
}

func TestHubShutdownIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stuck{release: make(chan struct{})}
		h := newHub(s, slog.New(slog.DiscardHandler), time.Second, 1)
		listening(t, h, "acme")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := h.shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the deadline", err)
		}
		close(s.release)
		if err := h.shutdown(t.Context()); err != nil {
			t.Errorf("error %v once the look has ended", err)
		}
	})
}
