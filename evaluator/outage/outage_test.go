package outage_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"tocsin/evaluator/outage"
)

// ledger keeps for which partitions an outage is announced. While it is down, it cannot be written.
type ledger struct {
	failing      map[int]bool
	calls        int
	down, panics bool
}

var errDown = errors.New("the store is down")

func (l *ledger) SourceFailed(_ context.Context, _ string, partition int, _ string) (int, error) {
	if l.panics {
		panic("poison")
	}
	if l.down {
		return 0, errDown
	}
	l.calls++
	l.failing[partition] = true
	return 1, nil
}

func (l *ledger) SourceRecovered(_ context.Context, partition int) (int, error) {
	if l.down {
		return 0, errDown
	}
	l.calls++
	delete(l.failing, partition)
	return 1, nil
}

// An outage is announced for a partition after the grace, again where that was not written, and ends when the source was
// read for it.
func TestOutage(t *testing.T) {
	now := time.Unix(1_795_244_520, 0)
	store := &ledger{failing: map[int]bool{}}
	a := outage.New(outage.Options{
		Store: store, Replica: "a", Clock: func() time.Time { return now }, Within: time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	failed := func(partition int) { a.Failed(t.Context(), partition, "broken") }
	works := func(partition int, read bool) { a.Works(t.Context(), partition, read) }
	steps := []struct {
		name    string
		do      func()
		failing string
		calls   int
	}{
		{"it begins", func() { failed(1) }, "[]", 0},
		{"it ends within the grace", func() { works(1, true) }, "[]", 0},
		{"it begins again", func() { failed(1) }, "[]", 0},
		{"just before the end of the grace", func() { now = now.Add(outage.Grace - 1); failed(1) }, "[]", 0},
		{"for another partition as well", func() { failed(2) }, "[]", 0},
		{"nobody can write it", func() { now = now.Add(1); store.down = true; failed(1); store.down = false }, "[]", 0},
		{"writing it panics", func() { store.panics = true; failed(1); store.panics = false }, "[]", 0},
		{"it is announced for the one that has failed for the grace", func() { failed(1); failed(2) }, "[1]", 1},
		{"once", func() { failed(1) }, "[1]", 1},
		{"for the other one as well", func() { now = now.Add(outage.Grace); failed(2); failed(2) }, "[1 2]", 2},
		{"the other one has no rules any more", func() { works(2, false) }, "[1 2]", 2},
		{"nobody can write the end", func() { store.down = true; works(1, true); store.down = false }, "[1 2]", 2},
		{"it ends", func() { works(1, true) }, "[2]", 3},
		{"once", func() { works(1, true) }, "[2]", 3},
		{"another replica has announced one", func() { a.Announced([]int{2, 3}); now = now.Add(outage.Grace); failed(3) }, "[2]", 3},
		{"this one ends it", func() { works(3, true) }, "[2]", 4},
		{"another replica has ended one", func() { a.Announced(nil); works(2, true) }, "[2]", 4},
		{"a partition that is given up begins again", func() {
			failed(2)
			a.GaveUp(2)
			now = now.Add(outage.Grace)
			failed(2)
		}, "[2]", 4},
	}
	for _, step := range steps {
		step.do()
		if got := fmt.Sprint(slices.Sorted(maps.Keys(store.failing))); got != step.failing || store.calls != step.calls {
			t.Fatalf("%s: announced for %s with %d calls, want %s and %d", step.name, got, store.calls, step.failing, step.calls)
		}
	}
}
