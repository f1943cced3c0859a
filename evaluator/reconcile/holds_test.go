package reconcile_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/evaluator/reconcile"
	"tocsin/evaluator/window/counting"
	"tocsin/rules"
)

// windows are exchanges of one group in memory, one each second in a period, and the alerts of a
// rule that counts them within a minute.
type windows struct {
	databases
	progress reconcile.WindowProgress
	alerts   []reconcile.WindowAlert
	// fromAgo and toAgo delimit the period, relative to the present.
	fromAgo, toAgo time.Duration
}

func (w *windows) WindowRule(context.Context, uuid.UUID, time.Duration, int) (reconcile.WindowProgress, []reconcile.WindowAlert, error) {
	return w.progress, w.alerts, nil
}

func (w *windows) ends(q counting.Query) (list []int64) {
	for at := ago(w.fromAgo); at < ago(w.toAgo); at += int64(time.Second) {
		if at >= q.FromNS && at < q.ToNS {
			list = append(list, at)
		}
	}
	return list
}

func (w *windows) Measure(_ context.Context, q counting.Query) ([]counting.Group, error) {
	return []counting.Group{{Group: "r", Observed: int64(len(w.ends(q)))}}, nil
}

func (w *windows) Cells(_ context.Context, c reconcile.CellsQuery) (cells []reconcile.Cell, _ error) {
	for _, at := range w.ends(c.Query) {
		n := (at - c.FromNS) / c.WidthNS
		if len(cells) == 0 || cells[len(cells)-1].Number != n {
			cells = append(cells, reconcile.Cell{Group: "r", Number: n})
		}
		for _, v := range []*reconcile.Volumes{&cells[len(cells)-1].Sure, &cells[len(cells)-1].Possible} {
			v.Observed, v.Volume = v.Observed+1, v.Volume+1
		}
	}
	return cells, nil
}

func (w *windows) Older(context.Context, string, int64) (bool, error) { return true, nil }

// newWindows has a threshold of 30 exchanges within a minute, and one exchange ending each second
// from 30 to 20 minutes ago.
func newWindows(list []reconcile.WindowAlert) *windows {
	w := &windows{fromAgo: 30 * time.Minute, toAgo: 20 * time.Minute, alerts: list, progress: reconcile.WindowProgress{
		SinceNS: ago(5 * time.Hour), UntilNS: ago(0), EditedNS: ago(5 * time.Hour),
	}}
	w.databases = databases{progress: &reconcile.Progress{At: cursor.At(present)}, rule: rules.Rule{
		ID: uuid.New(), ArmedSinceNS: ago(5 * time.Hour), Definition: rules.Definition{
			FireMode: rules.CountInWindow, Threshold: 30, WindowSeconds: 60, IntervalSeconds: 1, GroupBy: rules.GroupByRoute,
		},
	}}
	return w
}

func ago(d time.Duration) int64 { return present.Add(-d).UnixNano() }

// TestWhatCoversAValueBeyondTheThreshold has a group that is beyond the threshold from 30 to 20
// minutes ago, with an alert or without.
func TestWhatCoversAValueBeyondTheThreshold(t *testing.T) {
	at := func(d time.Duration) *int64 { return new(ago(d)) }
	count := func(toAgo time.Duration, observed int64) alerts.Count {
		return alerts.Count{Observed: observed, Threshold: 30, WindowSeconds: 60, GroupBy: rules.GroupByRoute, Group: "r", ToNS: ago(toAgo)}
	}
	const minute = time.Minute
	fired := reconcile.WindowAlert{ID: uuid.New(), FiredNS: ago(29 * minute), State: alerts.Firing, Count: count(29*minute, 60)}
	with := func(change func(a *reconcile.WindowAlert)) []reconcile.WindowAlert {
		a := fired
		change(&a)
		return []reconcile.WindowAlert{a}
	}
	byPerson := func(resolvedAgo time.Duration) func(a *reconcile.WindowAlert) {
		return func(a *reconcile.WindowAlert) {
			a.FiredNS, a.Count, a.State, a.Resolved, a.ByPerson = ago(50*minute), count(50*minute, 0), alerts.Resolved, at(resolvedAgo), true
			a.Count.ToNS = 0 // not compared
		}
	}
	for name, c := range map[string]struct {
		alerts []reconcile.WindowAlert
		change func(w *windows)
		want   string
	}{
		"none": {nil, nil, "missing"},
		"resolved by its value": {with(func(a *reconcile.WindowAlert) {
			a.State, a.Resolved = alerts.Resolved, at(18*minute)
			a.Count = count(18*minute, 0)
			a.Count.Fired = new(count(29*minute, 60))
		}), nil, ""},
		"it makes no progress":         {with(func(*reconcile.WindowAlert) {}), nil, "unexpected"},
		"another one, long before":     {with(func(a *reconcile.WindowAlert) { byPerson(40 * minute)(a); a.ByPerson = false }), nil, "missing"},
		"by a person, and below since": {with(byPerson(40 * minute)), nil, "missing"},
		"by a person, within":          {with(byPerson(25 * minute)), nil, ""},
		"by a person, and held still":  {with(func(a *reconcile.WindowAlert) { byPerson(40 * minute)(a); a.Held = true }), nil, ""},
		"by a person, for a time":      {with(func(a *reconcile.WindowAlert) { byPerson(40 * minute)(a); a.HeldUntil = at(20 * minute) }), nil, ""},
		"by a person, not to the end":  {with(func(a *reconcile.WindowAlert) { byPerson(40 * minute)(a); a.HeldUntil = at(24 * minute) }), nil, "missing"},
		"for a moment": {with(func(a *reconcile.WindowAlert) {
			a.State, a.Resolved, a.Count.ToNS = alerts.Resolved, at(28*minute), 0
		}), nil, "missing"},
		"by a person, for too short":       {with(func(a *reconcile.WindowAlert) { byPerson(40 * minute)(a); a.HeldUntil = at(35 * minute) }), nil, "missing"},
		"none, the rule was edited":        {nil, func(w *windows) { w.progress.EditedNS = ago(10 * minute) }, "unchecked"},
		"none, the rule was not evaluated": {nil, func(w *windows) { w.progress.SinceNS = ago(10 * minute) }, "unchecked"},
		"none, nobody knows since when":    {nil, func(w *windows) { w.progress.SinceNS = 0 }, "unchecked"},
		"none, too short a time":           {nil, func(w *windows) { w.toAgo = w.fromAgo - 35*time.Second }, ""},
		"none, it has to last":             {nil, func(w *windows) { w.rule.ForDurationSeconds = 900 }, ""},
		"none, too few":                    {nil, func(w *windows) { w.rule.Threshold = 61 }, ""},
		"none, armed later":                {nil, func(w *windows) { w.rule.ArmedSinceNS = ago(19 * minute) }, ""},
	} {
		w := newWindows(c.alerts)
		if c.change != nil {
			c.change(w)
		}
		got, err := (&reconcile.Reconciler{Source: w, Alerts: w, Windows: w, Groups: w}).Rule(t.Context(), "acme", w.rule.ID, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, f := range got.Findings {
			found = append(found, strings.ToLower(string(f.Kind)))
		}
		if strings.Join(found, " ") != c.want {
			t.Errorf("%s: %v, want %q: %+v", name, found, c.want, got)
		}
	}
}

// TestHowLateExplainsWhatIsMissing has exchanges that may have become visible late: a finding
// contains the lateness from which on nothing is missing, at most the window.
func TestHowLateExplainsWhatIsMissing(t *testing.T) {
	for name, c := range map[string]struct {
		threshold int
		measured  time.Duration
		want      []time.Duration
	}{
		"more than half of a window": {35, 0, []time.Duration{40 * time.Second}},
		"a few":                      {5, 0, []time.Duration{time.Minute}},
		"measured":                   {5, 25 * time.Second, []time.Duration{50*time.Second + 10*time.Second}},
		"measured to explain it":     {35, 40 * time.Second, nil},
	} {
		w := newWindows(nil)
		w.rule.Threshold, w.progress.LateNS = c.threshold, c.measured.Nanoseconds()
		got, err := (&reconcile.Reconciler{Source: w, Alerts: w, Windows: w, Groups: w}).Rule(t.Context(), "acme", w.rule.ID, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		var found []time.Duration
		for _, f := range got.Findings {
			if found = append(found, f.LateBy); !strings.Contains(f.Why, "unless exchanges became visible "+f.LateBy.String()) {
				t.Errorf("%s: %q", name, f.Why)
			}
		}
		if !slices.Equal(found, c.want) {
			t.Errorf("%s: explained by %v, want %v: %+v", name, found, c.want, got)
		}
	}
}
