package postgres

import (
	"testing"
	"time"
)

func TestWhenAnInboxIsCounted(t *testing.T) {
	const change = 7
	for name, c := range map[string]struct {
		took, since time.Duration
		newest      int64
		want        bool
	}{
		"nothing new":                     {time.Millisecond, time.Second, change, false},
		"nothing new for long":            {time.Millisecond, countAgain, change, true},
		"a change":                        {time.Millisecond, 2 * time.Millisecond, change + 1, true},
		"a change in a great inbox":       {500 * time.Millisecond, 4 * time.Second, change + 1, false},
		"a change in a great inbox, then": {500 * time.Millisecond, 5 * time.Second, change + 1, true},
		"nothing new in a greater one":    {time.Second, countAgain, change, false},
	} {
		began := time.Now()
		was := counted{newest: change, began: began, took: c.took}
		if got := was.due(c.newest, began.Add(c.since)); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestChangesAreReportedFromAMomentBeforeTheLookBefore checks that a transaction that commits late
// is reported, however often the inbox is looked at.
func TestChangesAreReportedFromAMomentBeforeTheLookBefore(t *testing.T) {
	var c counted
	began := time.Now()
	if _, known := c.since(10, began); known {
		t.Error("the first look knows what changed")
	}
	for _, step := range []struct {
		after  time.Duration
		newest int64
		want   int64
	}{
		{time.Second, 20, 10},
		{2 * time.Second, 30, 10},
		{3 * time.Second, 40, 10},
		{4 * time.Second, 50, 20},
		{5 * time.Second, 60, 30},
		{time.Minute, 70, 60},
		{2 * time.Minute, 70, 70},
	} {
		if got, known := c.since(step.newest, began.Add(step.after)); !known || got != step.want {
			t.Errorf("after %s: %d, want %d", step.after, got, step.want)
		}
	}
}
