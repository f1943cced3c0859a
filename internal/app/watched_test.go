package app_test

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"tocsin/evaluator"
	"tocsin/evaluator/source"
	"tocsin/evaluator/watch"
	"tocsin/evaluator/window/counting"
	"tocsin/internal/clickhouse"
	"tocsin/rules"
)

// watched is a source that counts its queries and lets a test interfere.
type watched struct {
	*clickhouse.Source
	// ahead is how far its clock is ahead.
	ahead time.Duration
	// before is called before each query, with the name of the method. If it returns an error, that
	// is the result of the query.
	before func(method string) error
	// scanned is called after each scan.
	scanned func()

	mu    sync.Mutex
	asked map[string]int
}

func (w *world) watched() *watched {
	w.t.Helper()
	return &watched{Source: w.source(), asked: map[string]int{}}
}

func (s *watched) note(method string) error {
	s.mu.Lock()
	s.asked[method]++
	s.mu.Unlock()
	if s.before != nil {
		return s.before(method)
	}
	return nil
}

// queries returns how many queries there were since the last call.
func (s *watched) queries() (all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.asked {
		all += n
	}
	clear(s.asked)
	return all
}

// counts returns how often each method was called since the last call.
func (s *watched) counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := maps.Clone(s.asked)
	clear(s.asked)
	return asked
}

func (s *watched) Observe(ctx context.Context, q source.ObserveQuery) (source.Observation, error) {
	if err := s.note("Observe"); err != nil {
		return source.Observation{}, err
	}
	q.SettleNS -= s.ahead.Nanoseconds()
	seen, err := s.Source.Observe(ctx, q)
	seen.NowNS += s.ahead.Nanoseconds()
	return seen, err
}

func (s *watched) RowCounts(ctx context.Context, q source.RowCountQuery) (source.RowCounts, error) {
	if err := s.note("RowCounts"); err != nil {
		return source.RowCounts{}, err
	}
	return s.Source.RowCounts(ctx, q)
}

func (s *watched) Scan(ctx context.Context, q source.Scan) (source.Page, error) {
	if err := s.note("Scan"); err != nil {
		return source.Page{}, err
	}
	page, err := s.Source.Scan(ctx, q)
	if s.scanned != nil {
		s.scanned()
	}
	return page, err
}

func (s *watched) Tally(ctx context.Context, q counting.TallyQuery) (counting.Tallies, error) {
	if err := s.note("Tally"); err != nil {
		return counting.Tallies{}, err
	}
	return s.Source.Tally(ctx, q)
}

func (s *watched) CountWindows(ctx context.Context, windows []counting.Query) (counting.Counted, error) {
	if err := s.note("CountWindows"); err != nil {
		return counting.Counted{}, err
	}
	return s.Source.CountWindows(ctx, windows)
}

func (s *watched) Arrivals(ctx context.Context, q watch.ArrivalsQuery) (watch.Arrivals, error) {
	if err := s.note("Arrivals"); err != nil {
		return watch.Arrivals{}, err
	}
	return s.Source.Arrivals(ctx, q)
}

func (s *watched) Newest(ctx context.Context, windows []counting.NewestQuery) ([][]rules.Exchange, error) {
	if err := s.note("Newest"); err != nil {
		return nil, err
	}
	return s.Source.Newest(ctx, windows)
}

// wantStale makes a tick that a change overtakes: nothing of it is written.
func (w *world) wantStale(e *evaluator.Evaluator) {
	w.t.Helper()
	result, err := w.tickWith(e)
	if !errors.Is(err, evaluator.ErrStale) || result.Stale != 1 || result.Alerts+result.Notifications > 0 {
		w.t.Errorf("Tick = %+v, %v; want it to be overtaken, and nothing written", result, err)
	}
}

// TestNoTransactionIsOpenDuringAQuery checks that during every kind of query to ClickHouse the
// process has no open transaction in Postgres, nor a running statement.
func TestNoTransactionIsOpenDuringAQuery(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.webhook("ops")
	rule := w.rule(hook)
	w.counting(rules.Definition{GroupBy: rules.GroupByRoute, WebhookIDs: webhooks(hook)})
	source := w.watched()
	source.before = func(method string) error {
		open := w.column(`select state || ': ' || query from pg_stat_activity
			where datname = current_database() and application_name = 'tocsin' and (xact_start is not null or state <> 'idle')`)
		if len(open) > 0 {
			t.Errorf("during %s: %q", method, open)
		}
		return nil
	}
	e := w.newEvaluator(evaluator.Options{Source: source, Workers: 1})
	if _, err := w.tickWith(e); err != nil {
		t.Fatal(err)
	}
	w.failIn("r", "a", "b", "c")
	w.fail(rule.ArmedSinceNS-10*time.Minute.Nanoseconds(), "old")
	w.armed(rule, rule.ArmedSinceNS-20*time.Minute.Nanoseconds())
	if result, err := w.tickWith(e); err != nil || result.Alerts != 5 {
		t.Fatalf("Tick = %+v, %v; want four alerts and that of a count", result, err)
	}
	asked := source.counts()
	for _, method := range []string{"Observe", "RowCounts", "Scan", "Newest"} {
		if asked[method] == 0 {
			t.Errorf("asked %v, and no %s", asked, method)
		}
	}
	if asked["Tally"]+asked["CountWindows"] == 0 {
		t.Errorf("asked %v, and no window", asked)
	}
}
