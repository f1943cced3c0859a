package app_test

import (
	"context"
	"fmt"
	"testing"

	"tocsin/evaluator"
	"tocsin/internal/clickhouse"
	"tocsin/rules"
)

// tapped is a source at which a test looks on, and which fails where a hook does.
type tapped struct {
	*clickhouse.Source
	onCount func() error
	// newest is how often the newest exchanges were asked for.
	newest int
}

func (w *world) tapped() *tapped {
	w.t.Helper()
	source, err := clickhouse.Open(clickhouse.Options{URL: w.ch.URL})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = source.Close() })
	return &tapped{Source: source}
}

func (s *tapped) CountWindows(ctx context.Context, windows []evaluator.WindowQuery) ([][]evaluator.GroupCount, error) {
	if s.onCount != nil {
		if err := s.onCount(); err != nil {
			return nil, err
		}
	}
	return s.Source.CountWindows(ctx, windows)
}

func (s *tapped) Newest(ctx context.Context, w evaluator.WindowQuery, groups []evaluator.GroupCount) ([]rules.Exchange, error) {
	s.newest++
	return s.Source.Newest(ctx, w, groups)
}

// failOn writes failures, some on each of the routes of a range.
func (w *world) failOn(from, to, each int) {
	w.t.Helper()
	at := w.ch.Now(w.t)
	var exchanges []rules.Exchange
	for i := from; i < to; i++ {
		for k := range each {
			exchanges = append(exchanges, rules.Exchange{
				TenantID: tenant, StartTimeNS: at + int64(i), EndTimeNS: &at, ExecutionID: fmt.Sprint(at, i, k),
				Application: "orders", Route: fmt.Sprint("route-", i), Status: rules.Failed,
			})
		}
	}
	w.ch.Insert(w.t, exchanges...)
}

// TestManyGroupsAreRaisedAtOnce has as many groups reach the threshold as a rule may
// have: their newest exchanges are read together.
func TestManyGroupsAreRaisedAtOnce(t *testing.T) {
	w := newWorld(t)
	w.counting(rules.Definition{GroupBy: rules.GroupByRoute, WebhookIDs: webhooks(w.webhook("ops"))})
	w.failOn(0, 1000, 3)
	source := w.tapped()
	if result, err := w.tickWith(w.newEvaluator(evaluator.Options{Source: source})); err != nil || result.Failed != 0 {
		t.Fatalf("Tick = %+v, %v", result, err)
	}
	w.wantColumn("alerts", alertStates, "FIRING 1000")
	w.wantColumn("alerts with an exchange of another group", `select group_key from alert where group_key is distinct from exchange->>'route'`)
	if source.newest != 1 {
		t.Errorf("asked %d times for the newest exchanges", source.newest)
	}
}
