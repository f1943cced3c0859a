package reconcile_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/cursor"
	"tocsin/evaluator/reconcile"
)

// next makes the next comparison of the last hour, at a position after the present, and keeps what it leaves.
func (d *databases) next(t *testing.T, after time.Duration) reconcile.Reconciliation {
	t.Helper()
	d.at(after)
	result, err := (&reconcile.Reconciler{Source: d, Alerts: d, Behind: time.Hour}).Rule(t.Context(), "acme", uuid.New(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	d.progress.Earlier = result.Comparison
	d.counted += result.LateDroppedNew
	return result
}

// at is a position after the present, up to which everything is evaluated.
func (d *databases) at(after time.Duration) {
	d.progress.At = cursor.At(present.Add(after))
	d.progress.LookBackFromNS, d.progress.BackfillFromNS = d.progress.At.StartTimeNS, nil
}

// show makes exchanges visible.
func (d *databases) show(list ...reconcile.Matched) { d.matching = append(d.matching, list...) }

func wantFound(t *testing.T, when string, got reconcile.Reconciliation, missing, lateDropped int64) {
	t.Helper()
	if got.Missing != missing || got.LateDropped != lateDropped {
		t.Errorf("%s: %d missing and %d late-dropped, want %d and %d", when, got.Missing, got.LateDropped, missing, lateDropped)
	}
}

const minute = time.Minute

// TestWhatAQueueDeliversTooLateIsLateDropped has an exchange of a second that is not visible in the first comparison,
// and without an alert in the second one.
func TestWhatAQueueDeliversTooLateIsLateDropped(t *testing.T) {
	d := newDatabases(5 * minute)
	wantFound(t, "before it is visible", d.next(t, 0), 0, 0)
	d.show(ran(20*minute, time.Second))
	wantFound(t, "once it is visible", d.next(t, 10*minute), 0, 1)
	wantFound(t, "in the next comparison", d.next(t, 20*minute), 0, 1)
	// The comparison by which it was proven is no longer the last one, and the rule was edited.
	d.rule.Version++
	wantFound(t, "after an edit", d.next(t, 30*minute), 0, 1)
	wantFound(t, "in a comparison that begins before", d.reconcile(t, 0, 0), 0, 1)
	wantFound(t, "when it ended more than an hour ago", d.next(t, 50*minute), 0, 0)
	wantFound(t, "in a comparison of a day", d.reconcile(t, 0, 0), 0, 1)
	// A longer look-back reaches it: that it has no alert is not explained any more.
	d.rule.LookBackSeconds = 24 * 3600
	wantFound(t, "when the rule looks back further", d.reconcile(t, 0, 0), 1, 0)
	if d.counted != 1 {
		t.Errorf("it was counted %d times", d.counted)
	}
}

// TestEachLateDroppedExchangeIsCountedOnce has exchanges that become visible too late one after the other, all of the same
// hour, while those before them leave the range of the comparison.
func TestEachLateDroppedExchangeIsCountedOnce(t *testing.T) {
	d := newDatabases(5 * minute)
	d.next(t, 0)
	for i := range 5 {
		d.show(ran(time.Duration(50-10*i)*minute, 0))
		d.next(t, time.Duration(i+1)*10*minute)
		if d.counted != int64(i+1) {
			t.Errorf("comparison %d: %d are counted", i, d.counted)
		}
	}
}

// TestManyLateDroppedExchangesAreCountedOnce has more of them than a comparison leaves.
func TestManyLateDroppedExchangesAreCountedOnce(t *testing.T) {
	d := newDatabases(5 * minute)
	d.next(t, 0)
	for i := range 1001 {
		d.show(ran(30*minute+time.Duration(i), 0))
	}
	wantFound(t, "first", d.next(t, 10*minute), 0, 1001)
	wantFound(t, "second", d.next(t, 20*minute), 0, 1001)
	// Until they have left the range, no other one is counted.
	d.show(ran(20*minute, 0))
	wantFound(t, "third", d.next(t, 25*minute), 0, 1002)
	if d.counted != 1001 {
		t.Errorf("%d are counted", d.counted)
	}
	d.next(t, 36*minute)
	d.show(ran(20*minute, 1))
	if d.next(t, 37*minute); d.counted != 1002 {
		t.Errorf("%d are counted in the end", d.counted)
	}
}

// TestWhatIsReallyMissingStaysMissing has an exchange that the first comparison found missing.
func TestWhatIsReallyMissingStaysMissing(t *testing.T) {
	d := newDatabases(5*minute, ran(20*minute, time.Second))
	wantFound(t, "first", d.next(t, 0), 1, 0)
	late := ran(19*minute, time.Second)
	d.show(late)
	for i := 1; i < 4; i++ {
		wantFound(t, fmt.Sprintf("comparison %d after it", i), d.next(t, time.Duration(i)*10*minute), 1, 1)
	}
}

// TestWhatTheEarlierComparisonDoesNotProveIsMissing has an exchange that is visible in the second comparison only.
func TestWhatTheEarlierComparisonDoesNotProveIsMissing(t *testing.T) {
	const lookBack = 5 * minute
	reach := lookBack + 80*time.Second
	for name, c := range map[string]struct {
		shown  reconcile.Matched
		change func(d *databases)
		proven bool
	}{
		"proven":                         {ran(20*minute, 0), nil, true},
		"the first comparison":           {ran(20*minute, 0), func(d *databases) { d.progress.Earlier = nil }, false},
		"the rule was edited":            {ran(20*minute, 0), func(d *databases) { d.rule.Version++ }, false},
		"the list was cut off":           {ran(20*minute, 0), func(d *databases) { d.progress.Earlier.Parts[0].CutOff = true }, false},
		"the look-back had passed it":    {ran(reach+1, 0), nil, true},
		"the look-back reached it":       {ran(reach, 0), nil, false},
		"it ran until it was reached":    {ran(3*minute, 3*minute), nil, false},
		"it ended after the comparison":  {ran(reach+1-5*minute, lookBack), func(d *databases) { d.progress.Earlier.Parts[0].ToNS = present.Add(-2 * minute).UnixNano() }, false},
		"it ended in the comparison":     {ran(2*minute+1, lookBack), nil, true},
		"it ended before the comparison": {ran(50*minute, 0), func(d *databases) { d.progress.Earlier.Parts[0].FromNS = present.Add(-50*minute + 1).UnixNano() }, false},
		"it ended where that began":      {ran(50*minute, 0), func(d *databases) { d.progress.Earlier.Parts[0].FromNS = present.Add(-50 * minute).UnixNano() }, true},
		"the clock was set back since":   {ran(20*minute, 0), func(d *databases) { d.progress.LookBackFromNS = present.Add(-15 * minute).UnixNano() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDatabases(lookBack)
			d.rule.Version = 7
			d.next(t, 0)
			d.show(c.shown)
			d.at(minute)
			if c.change != nil {
				c.change(d)
			}
			missing, late := int64(1), int64(0)
			if c.proven {
				missing, late = 0, 1
			}
			wantFound(t, "second", d.reconcile(t, 0, 0), missing, late)
		})
	}
}

// TestAComparisonWithinABacklogProvesNothingAboutIt has a partition that still evaluates an outage: until it has, its
// look-back is counted from where the outage began.
func TestAComparisonWithinABacklogProvesNothingAboutIt(t *testing.T) {
	d := newDatabases(5 * minute)
	d.progress.LookBackFromNS = present.Add(-25 * minute).UnixNano()
	d.progress.BackfillFromNS = new(present.Add(-10 * minute).UnixNano())
	result, err := (&reconcile.Reconciler{Source: d, Alerts: d}).Rule(t.Context(), "acme", uuid.New(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	d.progress.Earlier = result.Comparison
	d.show(ran(30*minute, 0), ran(40*minute, 0))
	wantFound(t, "afterwards", d.next(t, 10*minute), 1, 1)
	d.progress.BackfillFromNS = new(present.Add(-2 * time.Hour).UnixNano())
	if result, err = (&reconcile.Reconciler{Source: d, Alerts: d}).Rule(t.Context(), "acme", uuid.New(), time.Hour); err != nil || result.Comparison != nil {
		t.Errorf("a comparison of nothing leaves %+v, %v", result.Comparison, err)
	}
}

// TestManyMissingExchangesAreCutOff has more missing exchanges than a comparison leaves. Each comparison calls all of
// them missing, and what becomes visible too late meanwhile as well.
func TestManyMissingExchangesAreCutOff(t *testing.T) {
	d := newDatabases(5 * minute)
	for i := range 1001 {
		d.show(ran(20*minute+time.Duration(i), 0))
	}
	wantFound(t, "first", d.next(t, 0), 1001, 0)
	if c := d.progress.Earlier.Parts[0]; len(c.Missing) != 1000 || !c.CutOff {
		t.Errorf("%d missing are left, cut off %v", len(c.Missing), c.CutOff)
	}
	d.show(ran(19*minute, 0))
	wantFound(t, "second", d.next(t, 10*minute), 1002, 0)
	for i := range 2 {
		d.alerted[fmt.Sprint(20*minute+time.Duration(i), time.Duration(0))] = true
	}
	wantFound(t, "when two have their alerts", d.next(t, 11*minute), 1000, 0)
	d.show(ran(18*minute, 0))
	wantFound(t, "after a list that is whole", d.next(t, 12*minute), 1000, 1)
}

// TestWhatArrivesBehindALongLookBackIsCounted has exchanges that become visible beyond a look-back of an hour or longer,
// and so more than an hour after their end.
func TestWhatArrivesBehindALongLookBackIsCounted(t *testing.T) {
	for lookBack, wait := range map[time.Duration]time.Duration{
		time.Hour: 80 * time.Second, 24 * time.Hour: 16*minute + 10*time.Second, 7 * 24 * time.Hour: 16*minute + 10*time.Second,
	} {
		reach := lookBack + wait
		for name, c := range map[string]struct {
			shown reconcile.Matched
			late  int64
		}{
			"in the middle":                              {ran(reach+30*minute, time.Second), 1},
			"at the end":                                 {ran(reach+50*minute, 0), 1},
			"it has left what is compared":               {ran(reach+50*minute+1, 0), 0},
			"the look-back had just passed it":           {ran(reach+1, 0), 1},
			"the look-back reached it":                   {ran(reach, 0), 0},
			"it began an hour before what is compared":   {ran(reach+40*minute, 70*minute), 1},
			"it began longer before, and is not read":    {ran(reach+40*minute, 70*minute+1), 0},
			"it began and ended on both sides of an end": {ran(reach-minute, 2*minute), 0},
		} {
			t.Run(fmt.Sprint(lookBack, " ", name), func(t *testing.T) {
				d := newDatabases(lookBack)
				d.rule.ArmedSinceNS = present.Add(-10 * 24 * time.Hour).UnixNano()
				wantFound(t, "before it is visible", d.next(t, 0), 0, 0)
				d.show(c.shown)
				wantFound(t, "once it is visible", d.next(t, 10*minute), 0, c.late)
				wantFound(t, "in the next comparison", d.next(t, 10*minute), 0, c.late)
				if d.counted != c.late {
					t.Errorf("it was counted %d times", d.counted)
				}
			})
		}
	}
}

// TestWhatIsMissingIsNotLateDroppedBehindTheLookBack has exchanges without alerts that become too old for the look-back.
func TestWhatIsMissingIsNotLateDroppedBehindTheLookBack(t *testing.T) {
	d := newDatabases(time.Hour, ran(40*minute, 0), ran(90*minute, 0))
	for i := range 14 {
		missing := int64(0)
		if i <= 2 {
			missing = 1
		}
		wantFound(t, fmt.Sprintf("comparison %d", i), d.next(t, time.Duration(i)*10*minute), missing, 0)
	}
	// So many that they are cut off prove nothing, behind the look-back only.
	d = newDatabases(time.Hour)
	for i := range 1001 {
		d.show(ran(90*minute+time.Duration(i), 0))
	}
	d.next(t, 0)
	d.show(ran(80*minute, 0), ran(59*minute, 3*minute))
	wantFound(t, "after a list that was cut off", d.next(t, 0), 0, 1)
}

// TestBehindTheLookBackOnlyWhatEndedSinceTheRuleWasArmedCounts has a rule that is younger than its look-back.
func TestBehindTheLookBackOnlyWhatEndedSinceTheRuleWasArmedCounts(t *testing.T) {
	for armed, late := range map[time.Duration]int64{2 * time.Hour: 1, 89 * minute: 0, 30 * minute: 0} {
		d := newDatabases(time.Hour)
		d.rule.ArmedSinceNS = present.Add(-armed).UnixNano()
		d.next(t, 0)
		d.show(ran(90*minute, 0))
		wantFound(t, fmt.Sprintf("armed %v ago", armed), d.next(t, 0), 0, late)
	}
}
