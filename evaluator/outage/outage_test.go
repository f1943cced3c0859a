package outage_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"tocsin/evaluator/outage"
)

// ledger keeps what is announced. While it is down, it cannot be written.
type ledger struct {
	failed, recovered int
	down, panics      bool
}

var errDown = errors.New("the store is down")

func (l *ledger) SourceFailed(context.Context, string, string) (int, error) {
	if l.panics {
		panic("poison")
	}
	if l.down {
		return 0, errDown
	}
	l.failed++
	return 1, nil
}

func (l *ledger) SourceRecovered(context.Context, string) (int, error) {
	if l.down {
		return 0, errDown
	}
	l.recovered++
	return 1, nil
}

// An outage is announced after the grace, again where that was not written, and ends when the
// source fails for no partition any more and was read.
func TestOutage(t *testing.T) {
	now := time.Unix(1_795_244_520, 0)
	store := &ledger{}
	a := outage.New(outage.Options{
		Store: store, Replica: "a", Clock: func() time.Time { return now }, Within: time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	failed := func(partition int) { a.Failed(t.Context(), partition, "broken") }
	works := func(partition int, read bool) { a.Works(t.Context(), partition, read) }
	steps := []struct {
		name              string
		do                func()
		failed, recovered int
	}{
		{"it begins", func() { failed(1) }, 0, 0},
		{"it ends within the grace", func() { works(1, true) }, 0, 0},
		{"it begins again", func() { failed(1) }, 0, 0},
		{"just before the end of the grace", func() { now = now.Add(outage.Grace - 1); failed(1) }, 0, 0},
		{"for another partition as well", func() { failed(2) }, 0, 0},
		{"nobody can write it", func() { now = now.Add(1); store.down = true; failed(1); store.down = false }, 0, 0},
		{"writing it panics", func() { store.panics = true; failed(1); store.panics = false }, 0, 0},
		{"it is announced", func() { failed(1) }, 1, 0},
		{"once", func() { failed(1); failed(2) }, 1, 0},
		{"one partition works", func() { works(1, true) }, 1, 0},
		{"the other one does not need the source", func() { works(2, false) }, 1, 0},
		{"nobody can write the end", func() { store.down = true; works(1, true); store.down = false }, 1, 0},
		{"it ends", func() { works(1, true) }, 1, 1},
		{"once", func() { works(1, true) }, 1, 1},
		{"another replica announced one that this one may not end", func() { works(1, true) }, 1, 1},
		{"it may now", func() { a.Announced(true); works(1, true) }, 1, 2},
		{"a partition that is given up holds up no end", func() { failed(2); a.Announced(true); a.GaveUp(2); works(1, true) }, 1, 3},
	}
	for _, step := range steps {
		if step.do(); store.failed != step.failed || store.recovered != step.recovered {
			t.Fatalf("%s: announced %d times and ended %d times, want %d and %d", step.name, store.failed, store.recovered, step.failed, step.recovered)
		}
	}
}
