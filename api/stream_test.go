package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// deadlineRecorder is a connection that records its write deadlines.
type deadlineRecorder struct {
	*httptest.ResponseRecorder
	deadlines []time.Time
}

func (d *deadlineRecorder) SetWriteDeadline(t time.Time) error {
	d.deadlines = append(d.deadlines, t)
	return nil
}

func TestEachEventHasItsDeadlineAndTheConnectionNone(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	w := &deadlineRecorder{ResponseRecorder: httptest.NewRecorder()}
	out := &eventWriter{w: w, control: http.NewResponseController(w), now: func() time.Time { now = now.Add(time.Second); return now }}
	if err := out.begin(15 * time.Second); err != nil {
		t.Fatal(err)
	}
	if err := out.event("1", AlertsEvent{}); err != nil {
		t.Fatal(err)
	}
	out.release()
	start := now.Add(-time.Second)
	if want := []time.Time{start.Add(writeTimeout), now.Add(writeTimeout), {}}; !slices.Equal(w.deadlines, want) {
		t.Errorf("deadlines %v, want %v", w.deadlines, want)
	}
	if !w.Flushed {
		t.Error("nothing was flushed")
	}
}

func TestWhoCannotBeAskedAfterInTimeMayStillFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		before := time.Now()
		if err := stillMay(context.WithValue(t.Context(), callKey{}, call{holds: hangs})); err != nil {
			t.Error(err)
		}
		if took := time.Since(before); took != inboxTimeout {
			t.Errorf("the beat was held up for %v", took)
		}
	})
}
