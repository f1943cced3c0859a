package reconcile_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"tocsin/cursor"
	"tocsin/evaluator/reconcile"
	"tocsin/rules"
)

// present is the rule's position, in the middle of an hour.
var present = time.Date(2026, 11, 23, 6, 30, 0, 0, time.UTC) //nolint:gochecknoglobals // a constant

// ran is an exchange that ended ago before the present and took the given time.
func ran(endedAgo, lasted time.Duration) reconcile.Matched {
	ended := present.Add(-endedAgo)
	start := ended.Add(-lasted)
	return reconcile.Matched{
		Position: cursor.Position{StartTimeNS: start.UnixNano(), ExecutionID: fmt.Sprint(endedAgo, lasted)}, EndedNS: ended.UnixNano(),
	}
}

// databases are a source and alerts in memory.
type databases struct {
	rule     rules.Rule
	progress *reconcile.Progress
	matching []reconcile.Matched
	alerted  map[string]bool
	// appear are alerts that exist after the first look-up, and after it by appearAfter.
	appear      []string
	appearAfter time.Duration
	lookedUpAt  time.Time
	pages       int
	// counted are the late-dropped exchanges that comparisons counted by their keys.
	counted int64
}

func (d *databases) Matched(_ context.Context, q reconcile.MatchedQuery) ([]reconcile.Matched, error) {
	d.pages++
	var page []reconcile.Matched
	for _, m := range d.matching {
		if m.After(q.After) && m.StartTimeNS < q.BeforeNS && m.EndedNS >= q.EndedFromNS && m.EndedNS < q.EndedToNS && len(page) < q.Limit {
			page = append(page, m)
		}
	}
	return page, nil
}

func (d *databases) Reconcilable(context.Context, string, uuid.UUID) (rules.Rule, *reconcile.Progress, error) {
	return d.rule, d.progress, nil
}

func (d *databases) WithoutAlert(_ context.Context, _ uuid.UUID, keys []string) (without []string, _ error) {
	if d.lookedUpAt.IsZero() {
		d.lookedUpAt = time.Now()
	} else if time.Since(d.lookedUpAt) >= d.appearAfter {
		for _, key := range d.appear {
			d.alerted[key] = true
		}
	}
	for _, key := range keys {
		if !d.alerted[key] {
			without = append(without, key)
		}
	}
	return without, nil
}

func (d *databases) AlertsEnded(context.Context, uuid.UUID, cursor.Range, int64) (int64, error) {
	return int64(len(d.alerted)), nil
}

// newDatabases has a rule with a look-back at the present, and exchanges without alerts.
func newDatabases(lookBack time.Duration, matching ...reconcile.Matched) *databases {
	slices.SortFunc(matching, func(a, b reconcile.Matched) int { return a.Compare(b.Position) })
	return &databases{
		rule: rules.Rule{
			Definition:   rules.Definition{FireMode: rules.PerExchange, LookBackSeconds: int(lookBack.Seconds()), IntervalSeconds: 3600},
			ArmedSinceNS: present.Add(-48 * time.Hour).UnixNano(),
		},
		progress: &reconcile.Progress{At: cursor.At(present)}, matching: matching, alerted: map[string]bool{},
	}
}

func (d *databases) reconcile(t *testing.T, confirm time.Duration, pageSize int) reconcile.Reconciliation {
	t.Helper()
	r := &reconcile.Reconciler{Source: d, Alerts: d, Confirm: confirm, PageSize: pageSize}
	result, err := r.Rule(t.Context(), "acme", uuid.New(), 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// TestWhatIsMissingAndWhatIsLateDropped compares exchanges without alerts, by their durations.
func TestWhatIsMissingAndWhatIsLateDropped(t *testing.T) {
	const second, minute = time.Second, time.Minute
	for lookBack, c := range map[time.Duration]struct{ missing, dropped []time.Duration }{
		0:           {[]time.Duration{0}, []time.Duration{1, second, time.Hour / 2}},
		30 * second: {[]time.Duration{0, second, 30 * second}, []time.Duration{30*second + 1, time.Hour}},
		72 * second: {[]time.Duration{70 * second, 72 * second}, []time.Duration{72*second + 1, 73 * second, 90 * second}},
		2 * minute:  {[]time.Duration{2 * minute}, []time.Duration{2*minute + 1}},
		3 * minute:  {[]time.Duration{3 * minute}, []time.Duration{3*minute + 1}},
		time.Hour:   {[]time.Duration{60 * minute}, []time.Duration{60*minute + 1, 90 * minute}},
	} {
		for _, kind := range []struct {
			lasted  []time.Duration
			missing bool
		}{{c.missing, true}, {c.dropped, false}} {
			for _, lasted := range kind.lasted {
				got := newDatabases(lookBack, ran(10*time.Minute, lasted)).reconcile(t, 0, 0)
				if got.Matching != 1 || (got.Missing == 1) != kind.missing || (got.LateDropped == 1) == kind.missing {
					t.Errorf("look-back %v, %v long: %d missing, %d late-dropped of %d", lookBack, lasted, got.Missing, got.LateDropped, got.Matching)
				}
			}
		}
	}
}

// TestWhatMayStillBeJudgedIsNotMissing compares exchanges near the position, and behind a backfill.
func TestWhatMayStillBeJudgedIsNotMissing(t *testing.T) {
	at := func(ago time.Duration) *int64 { return new(present.Add(-ago).UnixNano()) }
	for name, c := range map[string]struct {
		lookBack time.Duration
		backfill *int64
		// from is the least age of an exchange when it is compared.
		from time.Duration
	}{
		"every pass compares it":       {time.Minute, nil, 2 * time.Minute},
		"compared within the hour":     {time.Hour, nil, 2 * time.Minute},
		"compared each quarter":        {24 * time.Hour, nil, 16*time.Minute + 10*time.Second},
		"behind it is a backfill":      {time.Hour, at(40 * time.Minute), 40 * time.Minute},
		"behind it is a late backfill": {24 * time.Hour, at(3 * time.Minute), 16*time.Minute + 10*time.Second},
	} {
		d := newDatabases(c.lookBack, ran(c.from-1, 0), ran(c.from+1, 0))
		d.progress.BackfillFromNS = c.backfill
		if got := d.reconcile(t, 0, 0); got.Missing != 1 || got.MissingSample[0] != fmt.Sprint(c.from+1, time.Duration(0)) {
			t.Errorf("%s: missing are %v", name, got.MissingSample)
		}
	}
	d := newDatabases(time.Hour, ran(time.Hour, 0))
	d.progress.At.StartTimeNS = d.rule.ArmedSinceNS - 1
	if got := d.reconcile(t, 0, 0); got.ToNS != 0 || d.pages != 0 {
		t.Errorf("a rule that is new was compared: %+v", got)
	}
	d.progress = nil
	if got := d.reconcile(t, 0, 0); got.ToNS != 0 || d.pages != 0 {
		t.Errorf("a rule that has evaluated nothing was compared: %+v", got)
	}
}

func TestLateDroppedIsCountedByTheHourOfTheEnd(t *testing.T) {
	hour := func(n int) int64 { return present.Truncate(time.Hour).Add(-time.Duration(n) * time.Hour).UnixNano() }
	d := newDatabases(time.Minute, ran(10*time.Minute, time.Hour), ran(29*time.Minute, time.Hour), ran(30*time.Minute, time.Hour), ran(31*time.Minute, time.Hour), ran(20*time.Hour, time.Hour))
	got := d.reconcile(t, 0, 2)
	want := map[int64]int64{hour(0): 3, hour(1): 1, hour(20): 1}
	if !maps.Equal(got.LateDroppedByHour, want) || got.LateDropped != 5 || got.Missing != 0 || d.pages < 3 {
		t.Errorf("late-dropped %v in %d pages, want %v", got.LateDroppedByHour, d.pages, want)
	}
}

func TestWhatIsMissingIsLookedForAgain(t *testing.T) {
	found := ran(10*time.Minute, 0)
	d := newDatabases(time.Minute, found, ran(11*time.Minute, 0))
	d.appear = []string{found.ExecutionID}
	if got := d.reconcile(t, time.Nanosecond, 0); got.Missing != 1 || got.Alerted != 1 || got.MissingSample[0] != fmt.Sprint(11*time.Minute, time.Duration(0)) {
		t.Errorf("reconciliation %+v", got)
	}
}

// TestWhatBecomesVisibleDuringAComparisonIsNotMissing has an exchange that became visible a moment before the
// comparison. The evaluation finds it with its next look at that part of the look-back.
func TestWhatBecomesVisibleDuringAComparisonIsNotMissing(t *testing.T) {
	for _, c := range []struct{ lookBack, lasted, found time.Duration }{
		{time.Hour, 0, 10 * time.Second},
		{24 * time.Hour, 0, 10 * time.Second},
		{24 * time.Hour, 2 * time.Hour, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			late := ran(30*time.Minute, c.lasted)
			d := newDatabases(c.lookBack, late)
			d.appear, d.appearAfter = []string{late.ExecutionID}, c.found+5*time.Second
			if got := d.reconcile(t, 30*time.Second, 0); got.Missing != 0 || got.Alerted != 1 {
				t.Errorf("look-back %v, found after %v: %+v", c.lookBack, c.found, got)
			}
		})
	}
}
