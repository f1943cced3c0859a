package evaluator_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/rules"
)

// committing is a source and a store that count commits, and fail some of them.
type committing struct {
	*asked
	commits int
	// refusals is how many commits are refused.
	refusals int
}

func (c *committing) Commit(ctx context.Context, b evaluator.Batch) (evaluator.Committed, error) {
	c.commits++
	if c.refusals > 0 {
		c.refusals--
		return evaluator.Committed{}, errors.New("the store is away")
	}
	return c.model.Commit(ctx, b)
}

// Fail leaves everything as it is.
func (c *committing) Fail(context.Context, []evaluator.Claim, string) ([]uuid.UUID, error) {
	return nil, nil
}

// nearby is a rule whose cursor stands a quarter of a second after the last whole one.
type nearby struct {
	*committing
	t      *testing.T
	engine *evaluator.Evaluator
	ruleID uuid.UUID
}

func newNearby(t *testing.T, pageSize int) *nearby {
	t.Helper()
	m := &model{now: begin, rules: map[uuid.UUID]*state{}, alerts: map[string]int{}, notified: map[string]int{}}
	n := &nearby{committing: &committing{asked: &asked{model: m}}, t: t, ruleID: uuid.UUID{1}}
	n.addRule(n.ruleID)
	engine, err := evaluator.New(evaluator.Options{
		Source: n, Store: n, Publisher: n, Texts: n, Logger: slog.New(slog.DiscardHandler), Replica: "model", PageSize: pageSize,
		Clock: func() time.Time { return time.Unix(0, m.now) },
	})
	if err != nil {
		t.Fatal(err)
	}
	n.engine = engine
	n.tick()
	m.now += second + quantum
	n.tick()
	return n
}

func (n *nearby) addRule(id uuid.UUID) *state {
	s := &state{rule: rules.Rule{ID: id, TenantID: "default", ArmedSinceNS: begin, Definition: rules.Definition{
		Name: id.String(), Enabled: true, FireMode: rules.PerExchange, LookBackSeconds: 3600, WebhookIDs: []uuid.UUID{{1}},
	}}}
	n.rules[id] = s
	return s
}

// fail has exchanges fail one by one, a millisecond apart, that all become visible now.
func (n *nearby) fail(startNS int64, count int) {
	end := n.now
	for i := range count {
		n.rows = append(n.rows, rules.Exchange{
			TenantID: "default", StartTimeNS: startNS + int64(i)*1e6, EndTimeNS: &end, ExecutionID: fmt.Sprint(len(n.rows)), Status: rules.Failed,
		})
	}
}

func (n *nearby) tick() evaluator.Result {
	n.t.Helper()
	n.scans, n.commits = nil, 0
	result, err := n.engine.Tick(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	return result
}

// complete demands an alert and a notification of each exchange for each rule, and
// the cursor of each at the horizon.
func (n *nearby) complete() {
	n.t.Helper()
	if want := len(n.rows) * len(n.rules); len(n.alerts) != want || len(n.notified) != want {
		n.t.Errorf("%d alerts and %d notifications, want %d of each", len(n.alerts), len(n.notified), want)
	}
	for id, s := range n.rules {
		if *s.cursor != (cursor.Position{StartTimeNS: n.now}) {
			n.t.Errorf("the cursor of rule %v is at %v, want the horizon", id, *s.cursor)
		}
	}
}

// TestOneScanForWhatIsLateAndWhatIsNew has exchanges become visible on both sides of
// the cursor: one scan reads them, and one commit writes them, as long as a page
// holds them and the late ones are near the cursor.
func TestOneScanForWhatIsLateAndWhatIsNew(t *testing.T) {
	cursorNS := begin + second + quantum
	for name, c := range map[string]struct {
		late           int64
		count, fresh   int
		scans, commits int
	}{
		"in the cursor's second":       {late: cursorNS - 10e6, count: 3, fresh: 4, scans: 1, commits: 1},
		"on both sides of a second":    {late: begin + second - 2e6, count: 4, fresh: 4, scans: 1, commits: 1},
		"nothing new":                  {late: cursorNS - 10e6, count: 3, scans: 1, commits: 1},
		"a gap as within stretches":    {late: begin - 4*second, count: 1, fresh: 1, scans: 1, commits: 1},
		"further back":                 {late: begin - 20*second, count: 1, fresh: 1, scans: 2, commits: 2},
		"a page, less one":             {late: cursorNS - 20e6, count: 5, fresh: 4, scans: 1, commits: 1},
		"a page":                       {late: cursorNS - 20e6, count: 5, fresh: 5, scans: 2, commits: 2},
		"pages of what is late":        {late: cursorNS - 40e6, count: 25, fresh: 2, scans: 3, commits: 3},
		"pages of what is new":         {late: cursorNS - 10e6, count: 2, fresh: 25, scans: 4, commits: 4},
		"pages, the last one together": {late: begin - second, count: 25, fresh: 2, scans: 3, commits: 3},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNearby(t, 10)
			n.now += 2 * second
			n.fail(c.late, c.count)
			n.fail(cursorNS+1e6, c.fresh)
			result := n.tick()
			if result.Alerts != c.count+c.fresh || result.Late != c.count {
				t.Errorf("%d alerts, %d of them late; want %d and %d", result.Alerts, result.Late, c.count+c.fresh, c.count)
			}
			if len(n.scans) != c.scans || n.commits != c.commits {
				t.Errorf("%d scans and %d commits, want %d and %d", len(n.scans), n.commits, c.scans, c.commits)
			}
			n.complete()
			n.now += second
			if n.tick(); n.offered != len(n.rows) {
				t.Errorf("%d alerts were offered of %d exchanges", n.offered, len(n.rows))
			}
		})
	}
}

// TestLateAndNewStandOrFallTogether has the one commit refused, or its process die
// before and after it: what was late is found again, by the same process and by one
// that remembers nothing.
func TestLateAndNewStandOrFallTogether(t *testing.T) {
	for name, happens := range map[string]func(n *nearby){
		"refused":         func(n *nearby) { n.refusals = 1; n.tick() },
		"dies before it":  func(n *nearby) { n.dieBefore = 1; n.dies() },
		"dies after it":   func(n *nearby) { n.dieAfter = 1; n.dies() },
		"claimed by else": func(n *nearby) { n.calls, n.meanwhile = 3, func() { n.rules[n.ruleID].token++ }; n.tick() },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNearby(t, 10)
			n.now += second
			n.fail(begin+second+quantum-10e6, 2)
			n.fail(begin+second+quantum+10e6, 2)
			happens(n)
			n.now += second
			n.tick()
			n.complete()
		})
	}
}

// dies has a tick end its process, and starts another one.
func (n *nearby) dies() {
	n.t.Helper()
	func() {
		defer func() {
			if r := recover(); r != errDied { //nolint:errorlint // the very value that the model panics with
				n.t.Fatalf("the process ended with %v", r)
			}
		}()
		n.tick()
	}()
	options := n.engine.Options
	engine, err := evaluator.New(options)
	if err != nil {
		n.t.Fatal(err)
	}
	n.engine = engine
}

// TestStragglerSharesNoScanThatBeginsBehindIt has a rule stand some seconds behind
// another one, for which alone a second between both has changed: the straggler
// misses nothing of what lies before that second.
func TestStragglerSharesNoScanThatBeginsBehindIt(t *testing.T) {
	n := newNearby(t, 10)
	for range 10 {
		n.now += second
		n.tick()
	}
	was := cursor.Position{StartTimeNS: n.now - 10*second}
	n.addRule(uuid.UUID{2}).cursor = &was
	n.now += second
	n.fail(n.now-9*second, 1)
	n.fail(n.now-2*second, 1)
	n.fail(n.now-second/2, 1)
	n.tick()
	n.complete()
}
