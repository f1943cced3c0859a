package reconcile_test

import (
	"testing"

	"pgregory.net/rapid"

	"tocsin/alerts"
	"tocsin/evaluator/reconcile"
	"tocsin/rules"
)

// ended is an exchange that counts in windows: when it ended, whether it is observed, and whether
// it became visible in time whenever a window was counted.
type ended struct {
	atNS     int64
	observed bool
	late     bool
}

// TestWhatIsSurelyReachedIsReached counts random exchanges at random instants of a step, of which
// some are not visible yet: what is surely reached is reached then, and what is not possibly is not.
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
