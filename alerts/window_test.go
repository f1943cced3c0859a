package alerts_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"tocsin/alerts"
	"tocsin/rules"
)

func TestNext(t *testing.T) {
	now := time.Unix(1_795_244_520, 0)
	at := func(state alerts.State, since, notified time.Duration) *alerts.Open {
		return &alerts.Open{State: state, Since: now.Add(-since), NotifiedAt: now.Add(-notified)}
	}
	held := func(since time.Duration) *alerts.Open {
		return &alerts.Open{State: alerts.Resolved, Since: now.Add(-since), Held: true}
	}
	until := func(more time.Duration) *alerts.Open {
		return &alerts.Open{State: alerts.Resolved, Since: now.Add(-time.Hour), Held: true, HeldUntil: now.Add(more)}
	}
	plain := alerts.Window{Threshold: 5}
	delayed := alerts.Window{Threshold: 5, For: time.Minute}
	reminding := alerts.Window{Threshold: 5, ReNotify: time.Hour}
	whole := func(observed int64) alerts.Value {
		return alerts.Value{Observed: observed, ArmedAt: now.Add(-24 * time.Hour)}
	}
	partial := func(observed int64) alerts.Value {
		return alerts.Value{Observed: observed, Partial: true, ArmedAt: now.Add(-time.Minute)}
	}
	snoozed := at(alerts.Firing, 9*time.Hour, time.Hour)
	snoozed.Snoozed = true
	for name, c := range map[string]struct {
		window alerts.Window
		open   *alerts.Open
		value  alerts.Value
		want   alerts.Step
	}{
		"nothing, below":             {plain, nil, whole(4), alerts.Stay},
		"nothing, reached":           {plain, nil, whole(5), alerts.Raise},
		"nothing, reached, delayed":  {delayed, nil, whole(5), alerts.Wait},
		"pending, too early":         {delayed, at(alerts.Pending, 59*time.Second, 0), whole(9), alerts.Stay},
		"pending, for long enough":   {delayed, at(alerts.Pending, time.Minute, 0), whole(5), alerts.Fire},
		"pending, below":             {delayed, at(alerts.Pending, time.Hour, 0), whole(4), alerts.Drop},
		"pending, no longer delayed": {plain, at(alerts.Pending, 0, 0), whole(5), alerts.Fire},
		"firing, reached":            {plain, at(alerts.Firing, time.Hour, time.Hour), whole(5), alerts.Stay},
		"firing, below":              {plain, at(alerts.Firing, 0, 0), whole(4), alerts.Clear},
		"firing, reminder not due":   {reminding, at(alerts.Firing, 9*time.Hour, 59*time.Minute), whole(5), alerts.Stay},
		"firing, reminder due":       {reminding, at(alerts.Firing, 9*time.Hour, time.Hour), whole(5), alerts.Remind},
		"firing, below beats remind": {reminding, at(alerts.Firing, 9*time.Hour, time.Hour), whole(0), alerts.Clear},
		"firing, snoozed":            {reminding, snoozed, whole(5), alerts.Stay},
		"snoozed, below":             {reminding, snoozed, whole(0), alerts.Clear},
		"acknowledged, no reminder":  {reminding, at(alerts.Acknowledged, 9*time.Hour, 9*time.Hour), whole(5), alerts.Stay},
		"acknowledged, below":        {plain, at(alerts.Acknowledged, 0, 0), whole(0), alerts.Clear},
		"resolved is not open":       {plain, at(alerts.Resolved, 0, 0), whole(9), alerts.Stay},
		"the database's clock leapt": {delayed, at(alerts.Pending, -time.Hour, 0), whole(5), alerts.Stay},

		"new rule, reached":               {plain, nil, partial(5), alerts.Raise},
		"new rule, firing, below":         {plain, at(alerts.Firing, time.Second, 0), partial(4), alerts.Clear},
		"edited, pending, below":          {delayed, at(alerts.Pending, time.Hour, 0), partial(4), alerts.Drop},
		"edited, firing, below":           {plain, at(alerts.Firing, time.Hour, 0), partial(0), alerts.Stay},
		"edited, acknowledged, below":     {plain, at(alerts.Acknowledged, time.Hour, 0), partial(0), alerts.Stay},
		"edited, firing, no reminder yet": {reminding, at(alerts.Firing, 9*time.Hour, 9*time.Hour), partial(4), alerts.Stay},
		"edited, firing, reached again":   {reminding, at(alerts.Firing, 9*time.Hour, 9*time.Hour), partial(5), alerts.Remind},

		"held, reached":                        {plain, held(time.Second), whole(9), alerts.Stay},
		"held, reached, delayed":               {delayed, held(time.Hour), whole(9), alerts.Stay},
		"held, reached, no reminder":           {reminding, held(9 * time.Hour), whole(9), alerts.Stay},
		"held, below":                          {plain, held(time.Second), whole(4), alerts.Release},
		"held for an hour, reached":            {plain, until(time.Nanosecond), whole(9), alerts.Stay},
		"held for an hour, below":              {plain, until(time.Nanosecond), whole(4), alerts.Stay},
		"held for an hour, over, reached":      {plain, until(0), whole(9), alerts.Release},
		"held for an hour, over, below":        {plain, until(0), whole(4), alerts.Release},
		"held for an hour, armed again since":  {plain, until(time.Hour), alerts.Value{Observed: 9, Partial: true, ArmedAt: now}, alerts.Release},
		"held, below since an edit":            {plain, held(time.Second), partial(4), alerts.Release},
		"held, reached, armed again since":     {plain, held(time.Hour), partial(9), alerts.Release},
		"held, reached, armed again before it": {plain, held(time.Second), partial(9), alerts.Stay},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.window.Next(c.open, c.value, now); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestActions(t *testing.T) {
	for _, c := range []struct {
		from   alerts.State
		action alerts.Action
		to     alerts.State
		fails  bool
	}{
		{alerts.Firing, alerts.Acknowledge, alerts.Acknowledged, false},
		{alerts.Acknowledged, alerts.Acknowledge, alerts.Acknowledged, false},
		{alerts.Resolved, alerts.Acknowledge, alerts.Resolved, true},
		{alerts.Firing, alerts.Resolve, alerts.Resolved, false},
		{alerts.Acknowledged, alerts.Resolve, alerts.Resolved, false},
		{alerts.Resolved, alerts.Resolve, alerts.Resolved, false},
		{alerts.Pending, alerts.Acknowledge, alerts.Pending, true},
		{alerts.Pending, alerts.Resolve, alerts.Pending, true},
		{alerts.Firing, "dance", alerts.Firing, true},
	} {
		to, err := c.from.After(c.action)
		if to != c.to || (err != nil) != c.fails {
			t.Errorf("%s after %s = %s, %v", c.from, c.action, to, err)
		}
	}
}

func TestReached(t *testing.T) {
	ratio := alerts.Window{Mode: rules.RatioInWindow, Measure: rules.Measure{Percent: 7, MinVolume: 100}}
	burning := alerts.Window{Mode: rules.RatioInWindow, Measure: rules.Measure{Percent: 50, MinVolume: 4, ShortWindowSeconds: 60}}
	fine := alerts.Window{Mode: rules.RatioInWindow, Measure: rules.Measure{Percent: 0.001, MinVolume: 1}}
	duration := alerts.Window{Mode: rules.DurationInWindow, Measure: rules.Measure{Percentile: 95, DurationMS: 1, MinVolume: 20}}
	median := alerts.Window{Mode: rules.DurationInWindow, Measure: rules.Measure{Percentile: 50, DurationMS: 1, MinVolume: 1}}
	for name, c := range map[string]struct {
		window alerts.Window
		value  alerts.Value
		want   bool
	}{
		"ratio, exactly reached": {ratio, alerts.Value{Observed: 7, Volume: 100}, true},
		"ratio, below":           {ratio, alerts.Value{Observed: 7, Volume: 101}, false},
		"ratio, of too few":      {ratio, alerts.Value{Observed: 99, Volume: 99}, false},
		"ratio, of nothing":      {fine, alerts.Value{Volume: 1}, false},
		"ratio, one of many":     {fine, alerts.Value{Observed: 1, Volume: 100_000}, true},
		"ratio, one of too many": {fine, alerts.Value{Observed: 1, Volume: 100_001}, false},
		"short window, reached":  {burning, alerts.Value{Observed: 5, Volume: 10, ShortObserved: 1, ShortVolume: 2}, true},
		"short window, better":   {burning, alerts.Value{Observed: 5, Volume: 10, ShortObserved: 1, ShortVolume: 3}, false},
		"short window, empty":    {burning, alerts.Value{Observed: 5, Volume: 10}, false},
		"p95, one of 20":         {duration, alerts.Value{Observed: 1, Volume: 20}, false},
		"p95, two of 20":         {duration, alerts.Value{Observed: 2, Volume: 20}, true},
		"p95, two of 40":         {duration, alerts.Value{Observed: 2, Volume: 40}, false},
		"p95, of too few":        {duration, alerts.Value{Observed: 19, Volume: 19}, false},
		"p50 of one":             {median, alerts.Value{Observed: 1, Volume: 1}, true},
		"p50 of two, one slow":   {median, alerts.Value{Observed: 1, Volume: 2}, false},
		"p50 of three, two slow": {median, alerts.Value{Observed: 2, Volume: 3}, true},
	} {
		if got := c.window.Reached(c.value); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestLeast checks that nothing is reached below the value that Least returns.
func TestLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := alerts.Window{
			Mode: rapid.SampledFrom([]rules.FireMode{rules.CountInWindow, rules.RatioInWindow, rules.DurationInWindow}).Draw(t, "mode"), Threshold: 5,
			Measure: rules.Measure{
				Percent: float64(rapid.IntRange(1, 100_000).Draw(t, "thousandths")) / 1000, MinVolume: rapid.IntRange(1, 500).Draw(t, "volume"),
				Percentile: rapid.SampledFrom([]int{50, 95, 99}).Draw(t, "percentile"),
			},
		}
		volume := rapid.Int64Range(0, 1000).Draw(t, "in all")
		observed := rapid.Int64Range(0, volume).Draw(t, "observed")
		if observed < w.Least() && w.Reached(alerts.Value{Observed: observed, Volume: volume}) {
			t.Fatalf("%d of %d reach it, and %d are the least", observed, volume, w.Least())
		}
	})
}
