package evaluator_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/rules"
)

// counter is a source and a store of rules each of which counts five exchanges
// and raises. Rules are named by the number in their scope.
type counter struct {
	*model
	claims []evaluator.Claim
	// poison makes a query fail, slow makes it fail and takes the whole budget,
	// refused makes a commit fail, stale is left out of one.
	poison, slow, refused, stale string
	// endless makes a tally fail and take the whole budget.
	endless bool
	// tardy makes each query take the whole budget, and cursors advance.
	tardy   bool
	tallies int
	clock   time.Time
	// batches holds the names of the rules asked about together, raised of those
	// whose alert stands, failed of those that failed.
	batches        [][]string
	raised, failed []string
	commits        int
	// owing counts the rules that owe a look-back.
	owing int
}

func newCounter(n int) *counter {
	c := &counter{model: &model{}, clock: time.Unix(1_795_244_520, 0)}
	for i := range n {
		name := fmt.Sprintf("%03d", i)
		c.claims = append(c.claims, evaluator.Claim{Token: 1, From: &cursor.Position{StartTimeNS: begin}, Rule: rules.Rule{
			ID: uuid.UUID{14: byte(i >> 8), 15: byte(i)}, TenantID: "default", Version: 1,
			Definition: rules.Definition{
				Name: name, FireMode: rules.CountInWindow, Threshold: 5, WindowSeconds: 60, IntervalSeconds: 1,
				Scope: rules.Scope{Applications: []string{name}}, Filter: rules.Filter{ErrorMessageContains: "x"},
			},
		}})
	}
	return c
}

func (c *counter) Load(context.Context, evaluator.ClaimRequest) (evaluator.Loaded, error) {
	return evaluator.Loaded{Claims: slices.Clone(c.claims)}, nil
}

func (c *counter) Now(context.Context) (int64, error) { return begin + second, nil }

func (c *counter) CountWindows(_ context.Context, windows []evaluator.WindowQuery) ([][]evaluator.GroupCount, error) {
	var names []string
	for _, w := range windows {
		names = append(names, w.Scope.Applications[0])
	}
	c.batches = append(c.batches, names)
	if slices.Contains(names, c.slow) {
		c.clock = c.clock.Add(20 * time.Second)
		return nil, errors.New("took too long")
	}
	if c.tardy {
		c.clock = c.clock.Add(20 * time.Second)
	}
	if slices.Contains(names, c.poison) {
		return nil, errors.New("poison")
	}
	return slices.Repeat([][]evaluator.GroupCount{{{Observed: 5, NewestNS: begin}}}, len(windows)), nil
}

func (c *counter) Tally(ctx context.Context, q evaluator.TallyQuery) ([]evaluator.Tally, bool, error) {
	c.tallies++
	if c.endless {
		c.clock = c.clock.Add(20 * time.Second)
	}
	return c.model.Tally(ctx, q)
}

func (c *counter) Newest(_ context.Context, _ evaluator.WindowQuery, groups []evaluator.GroupCount) ([]rules.Exchange, error) {
	return make([]rules.Exchange, len(groups)), nil
}

func (c *counter) CountTexts(*rules.Rule, *alerts.Count, *rules.Exchange) (a, b string, _ error) {
	return "", "", nil
}

func (c *counter) Commit(_ context.Context, b evaluator.Batch) (evaluator.Committed, error) {
	var done evaluator.Committed
	var raised []string
	for i := range b.Changes {
		if b.Changes[i].Instance.RuleName == c.refused {
			return done, errors.New("refused")
		}
		if b.Changes[i].Instance.RuleName != c.stale {
			raised = append(raised, b.Changes[i].Instance.RuleName)
		}
	}
	for _, a := range b.Advances {
		if a.OwedFromNS != nil {
			c.owing++
		}
		if fmt.Sprintf("%03d", int(a.RuleID[14])<<8+int(a.RuleID[15])) != c.stale {
			done.Advanced = append(done.Advanced, a.RuleID)
			if c.tardy {
				c.claims[int(a.RuleID[14])<<8+int(a.RuleID[15])].From = &a.To
			}
		}
	}
	c.commits++
	c.raised = append(c.raised, raised...)
	return done, nil
}

func (c *counter) Fail(_ context.Context, claims []evaluator.Claim, _ string) ([]uuid.UUID, error) {
	for i := range claims {
		c.failed = append(c.failed, claims[i].Rule.Name)
	}
	return nil, nil
}

func (c *counter) engine(t *testing.T) *evaluator.Evaluator {
	t.Helper()
	e, err := evaluator.New(evaluator.Options{
		Source: c, Store: c, Publisher: c, Texts: c, Logger: slog.New(slog.DiscardHandler), Clock: func() time.Time { return c.clock }, Replica: "r",
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// pass ticks and forgets what the tick before did.
func (c *counter) pass(t *testing.T, e *evaluator.Evaluator) evaluator.Result {
	t.Helper()
	c.batches, c.raised, c.failed, c.commits = nil, nil, nil, 0
	result, err := e.Tick(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(c.raised)
	return result
}

// names are those of n rules but the one left out.
func names(n int, without string) []string {
	var list []string
	for i := range n {
		if name := fmt.Sprintf("%03d", i); name != without {
			list = append(list, name)
		}
	}
	return list
}

func TestOneCountThatFailsFailsAlone(t *testing.T) {
	for name, c := range map[string]func(*counter){
		"a query":  func(c *counter) { c.poison = "042" },
		"a commit": func(c *counter) { c.refused = "042" },
	} {
		t.Run(name, func(t *testing.T) {
			store := newCounter(120)
			c(store)
			engine := store.engine(t)
			for range 2 {
				if result := store.pass(t, engine); result.Failed != 1 {
					t.Errorf("%+v", result)
				}
				if diff := cmp.Diff(names(120, "042"), store.raised); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff([]string{"042"}, store.failed); diff != "" {
					t.Error(diff)
				}
			}
			if name == "a query" {
				// Known by then, and asked alone after all others.
				if n := len(store.batches); n != 4 || !slices.Equal(store.batches[3], []string{"042"}) {
					t.Errorf("%d queries, the last for %v", n, store.batches[n-1])
				}
				store.poison = ""
				store.clock = store.clock.Add(time.Hour)
				if store.pass(t, engine); len(store.batches) != 3 || len(store.raised) != 120 {
					t.Errorf("when it works again, %d queries raise %d alerts", len(store.batches), len(store.raised))
				}
			}
		})
	}
}

func TestOneStaleCountChangesNothing(t *testing.T) {
	store := newCounter(120)
	store.stale = "042"
	if result := store.pass(t, store.engine(t)); result.Stale != 1 || result.Failed != 0 {
		t.Errorf("%+v", result)
	}
	if diff := cmp.Diff(names(120, "042"), store.raised); diff != "" {
		t.Error(diff)
	}
}

// TestACountOwesNoLookBack has a rule count that owed a look-back when it did not.
func TestACountOwesNoLookBack(t *testing.T) {
	store := newCounter(2)
	store.claims[0].OwedFromNS = new(begin - 100*second)
	if result := store.pass(t, store.engine(t)); result.Failed != 0 || store.commits == 0 || store.owing > 0 {
		t.Errorf("%+v, %d commits; %d rules owe a look-back", result, store.commits, store.owing)
	}
}

// TestSlowCountKeepsNobodyWaiting lets one rule take all the time that there is.
func TestSlowCountKeepsNobodyWaiting(t *testing.T) {
	store := newCounter(120)
	store.slow = "000"
	engine := store.engine(t)
	if result := store.pass(t, engine); result.Failed != 0 || len(store.raised) != 0 || len(store.batches) != 1 || store.commits != 1 {
		t.Errorf("at first: %+v, %d queries, %d commits, %v", result, len(store.batches), store.commits, store.raised)
	}
	// The 50 that were asked together are asked one by one, after the others.
	store.pass(t, engine)
	if len(store.batches[0]) != 50 || len(store.batches[1]) != 20 || len(store.batches[2]) != 1 {
		t.Errorf("%v", store.batches)
	}
	if len(store.raised) < 70 {
		t.Errorf("%d rules raised", len(store.raised))
	}
	if diff := cmp.Diff([]string{"000"}, store.failed); diff != "" {
		t.Error(diff)
	}
	// It has proven to be the one.
	store.pass(t, engine)
	if diff := cmp.Diff(names(120, "000"), store.raised); diff != "" {
		t.Error(diff)
	}
}

// TestSlowTallyKeepsNobodyWaiting lets a tally take all the time that there is: the
// conditions are sent instead, until it is tried again.
func TestSlowTallyKeepsNobodyWaiting(t *testing.T) {
	store := newCounter(120)
	for i := range store.claims {
		store.claims[i].Rule.Filter = rules.Filter{}
	}
	store.endless = true
	engine := store.engine(t)
	store.pass(t, engine)
	for range 2 {
		store.pass(t, engine)
		if diff := cmp.Diff(names(120, ""), store.raised); diff != "" || store.tallies != 1 {
			t.Errorf("after %d tallies: %s", store.tallies, diff)
		}
	}
	store.clock = store.clock.Add(time.Hour)
	if store.pass(t, engine); store.tallies != 2 {
		t.Errorf("%d tallies", store.tallies)
	}
}

// TestCountsTakeTurns has each query take the whole budget, and succeed.
func TestCountsTakeTurns(t *testing.T) {
	store := newCounter(110)
	store.tardy = true
	engine := store.engine(t)
	var raised []string
	for range 3 {
		store.pass(t, engine)
		raised = append(raised, store.raised...)
	}
	slices.Sort(raised)
	if diff := cmp.Diff(names(110, ""), raised); diff != "" {
		t.Error(diff)
	}
}
