package reconcile_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"tocsin/alerts"
	"tocsin/evaluator/reconcile"
	"tocsin/evaluator/window/counting"
	"tocsin/rules"
)

// ended is an exchange that counts in windows: when it ended, whether it is observed, and whether
// it was visible whenever a window was counted.
type ended struct {
	atNS     int64
	observed bool
	late     bool
}

// TestWhatIsSurelyReachedIsReached counts random exchanges at random instants of a step, some of
// which are not visible yet: what is surely reached is then reached, and what is not possibly
// reached is not.
func TestWhatIsSurelyReachedIsReached(t *testing.T) {
	const second = int64(1e9)
	surely, never := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		d := rules.Definition{WindowSeconds: rapid.IntRange(10, 60).Draw(t, "window")}
		d.FireMode = rapid.SampledFrom(rules.FireModes()[1:]).Draw(t, "mode")
		switch d.FireMode { //nolint:exhaustive // the others count
		case rules.RatioInWindow:
			d.Percent, d.MinVolume = rapid.SampledFrom([]float64{1, 10, 33.333, 50, 100}).Draw(t, "percent"), rapid.IntRange(1, 20).Draw(t, "least")
			if rapid.Bool().Draw(t, "two windows") {
				d.ShortWindowSeconds = rapid.IntRange(5, d.WindowSeconds-1).Draw(t, "short window")
			}
		case rules.DurationInWindow:
			d.Percentile, d.DurationMS, d.MinVolume = rapid.SampledFrom([]int{50, 95, 99}).Draw(t, "percentile"), 1, rapid.IntRange(1, 20).Draw(t, "least")
		default:
			d.Threshold = rapid.IntRange(1, 20).Draw(t, "threshold")
		}
		compares := d.FireMode == rules.RatioInWindow || d.FireMode == rules.DurationInWindow
		width := rapid.Int64Range(1, 3).Draw(t, "width") * second
		lateNS := rapid.Int64Range(0, 8).Draw(t, "late") * second
		fromNS := rapid.Int64Range(0, second).Draw(t, "from")
		toNS := fromNS + 150*second
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) ended {
			return ended{rapid.Int64Range(fromNS, toNS-1).Draw(t, "at"), !compares || rapid.Bool().Draw(t, "observed"), rapid.Bool().Draw(t, "late")}
		}), 0, 120).Draw(t, "ended")
		cells := map[int64]*reconcile.Cell{}
		for _, e := range list {
			n := (e.atNS - fromNS) / width
			c := cells[n]
			if c == nil {
				c = &reconcile.Cell{Number: n}
				cells[n] = c
			}
			for _, v := range []*reconcile.Volumes{&c.Sure, &c.Possible} {
				v.Volume++
				if e.observed {
					v.Observed++
				}
			}
		}
		var all []reconcile.Cell
		for _, c := range cells {
			all = append(all, *c)
		}
		at := fromNS + rapid.Int64Range(60, 140).Draw(t, "step")*second
		sure, possible := reconcile.StateAt(&d, all, fromNS, toNS, width, at, lateNS)
		now := at + rapid.Int64Range(0, width-1).Draw(t, "instant")
		var v alerts.Value
		for _, e := range list {
			if e.atNS >= now || e.late && e.atNS > now-lateNS {
				continue
			}
			for i, length := range []int{d.WindowSeconds, d.ShortWindowSeconds} {
				if e.atNS < now-int64(length)*second {
					continue
				}
				observed, volume := &v.Observed, &v.Volume
				if i == 1 {
					observed, volume = &v.ShortObserved, &v.ShortVolume
				}
				*volume++
				if e.observed {
					*observed++
				}
			}
		}
		w := alerts.WindowOf(&d)
		reached := w.Reached(v)
		if sure && !reached {
			t.Fatalf("%+v reaches nothing, and is said to for sure", v)
		}
		if reached && !possible {
			t.Fatalf("%+v reaches the bound, and is said not to", v)
		}
		if sure {
			surely++
		}
		if !possible {
			never++
		}
	})
	if surely == 0 || never == 0 {
		t.Errorf("surely %d, never %d: nothing was compared", surely, never)
	}
}

// counted is one window as it is measured now: groups with 61 exchanges each. It records its
// queries.
type counted struct {
	*windows
	groups int
	// cellsOf is the number of cells of each group. In the last one all exchanges became visible
	// late.
	cellsOf       int
	cells, olders int
	// endless makes queries block until the context ends.
	endless bool
}

func groupName(n int) string { return fmt.Sprintf("g%02d", n) }

func (c *counted) Measure(ctx context.Context, _ counting.Query) (list []counting.Group, _ error) {
	if c.endless {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for n := range c.groups {
		list = append(list, counting.Group{Group: groupName(n), Observed: 61})
	}
	return list, nil
}

func (c *counted) Cells(_ context.Context, q reconcile.CellsQuery) (list []reconcile.Cell, _ error) {
	c.cells++
	for n := range c.groups {
		for i := range c.cellsOf {
			if len(list) == q.Limit {
				return list, nil
			}
			v := reconcile.Volumes{Observed: 1, Volume: 1}
			list = append(list, reconcile.Cell{Group: groupName(n), Number: int64(59 - c.cellsOf + 1 + i), Sure: v, Possible: v})
		}
	}
	return list, nil
}

func (c *counted) Older(context.Context, string, int64) (bool, error) {
	c.olders++
	return true, nil
}

// reconcile compares alerts that contain their counts, one of each group, and returns the kinds of
// findings.
func (c *counted) reconcile(t *testing.T, says ...int64) (reconcile.Reconciliation, map[reconcile.FindingKind]int) {
	t.Helper()
	c.windows, c.groups = newWindows(nil), len(says)
	c.progress.SinceNS = 0 // no periods are looked at
	for n, observed := range says {
		c.alerts = append(c.alerts, reconcile.WindowAlert{ID: uuid.New(), FiredNS: ago(10 * time.Minute), State: alerts.Firing, Count: alerts.Count{
			Observed: observed, Threshold: 30, WindowSeconds: 60, GroupBy: rules.GroupByRoute, Group: groupName(n), ToNS: ago(10 * time.Minute),
		}})
	}
	r := &reconcile.Reconciler{Source: c, Alerts: c, Windows: c, Groups: c}
	if c.endless {
		r.WindowRuleMost = time.Millisecond
	}
	got, err := r.Rule(t.Context(), "acme", c.rule.ID, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[reconcile.FindingKind]int{}
	for _, f := range got.Findings {
		kinds[f.Kind]++
	}
	return got, kinds
}

// TestManyFindingsHideNoOther has many late alerts, and a few different ones, of one window: what
// belongs to the window besides its value is read only once.
func TestManyFindingsHideNoOther(t *testing.T) {
	c := &counted{cellsOf: 1}
	says := make([]int64, 27)
	for n := range says {
		says[n] = 60
	}
	says[25], says[26] = 70, 80
	got, kinds := c.reconcile(t, says...)
	if got.Late != 25 || kinds[reconcile.Late] != 20 || got.Different != 2 || kinds[reconcile.Different] != 2 || got.LateBy != time.Second {
		t.Errorf("named %v of %+v", kinds, got)
	}
	if c.cells != 1 || c.olders != 1 {
		t.Errorf("cells were read %d times, what is older %d times", c.cells, c.olders)
	}
}

// TestLatenessThatIsNotKnown has more cells than are read: for groups whose cells were not all
// read, it is unknown how late they were.
func TestLatenessThatIsNotKnown(t *testing.T) {
	c := &counted{cellsOf: 110_000}
	got, kinds := c.reconcile(t, 60, 60, 60, 60)
	if got.Late != 2 || kinds[reconcile.Late] != 2 || kinds[reconcile.Unchecked] != 2+1 || got.Different != 0 {
		t.Errorf("named %v of %+v", kinds, got)
	}
}

// TestComparisonThatTakesTooLong is cut short, and says so; one whose context is cancelled by its
// caller is an error.
func TestComparisonThatTakesTooLong(t *testing.T) {
	c := &counted{endless: true}
	got, kinds := c.reconcile(t, 60)
	if got.Unchecked != 1 || kinds[reconcile.Unchecked] != 1 || got.FromNS >= got.ToNS {
		t.Errorf("named %v of %+v", kinds, got)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := (&reconcile.Reconciler{Source: c, Alerts: c, Windows: c, Groups: c}).Rule(ended, "acme", c.rule.ID, time.Hour); err == nil {
		t.Error("a comparison that its caller ended is no error")
	}
}
