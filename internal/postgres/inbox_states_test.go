package postgres

import (
	"testing"
	"time"
)

func TestWhenAnInboxIsCounted(t *testing.T) {
	for name, c := range map[string]struct {
		took, since time.Duration
		stale, want bool
	}{
		"nothing new":                     {time.Millisecond, time.Second, false, false},
		"nothing new for long":            {time.Millisecond, countAgain, false, true},
		"a change":                        {time.Millisecond, 2 * time.Millisecond, true, true},
		"a change in a great inbox":       {500 * time.Millisecond, 4 * time.Second, true, false},
		"a change in a great inbox, then": {500 * time.Millisecond, 5 * time.Second, true, true},
		"nothing new in a greater one":    {time.Second, countAgain, false, false},
	} {
		began := time.Now()
		was := counted{stale: c.stale, began: began, took: c.took}
		if got := was.due(began.Add(c.since)); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestWhereChangesAreLookedFor has a transaction that goes on from the second look to the sixth.
// Until the look after its end, changes are looked for from before it began.
func TestWhereChangesAreLookedFor(t *testing.T) {
	var c counted
	began := time.Now()
	if _, _, known := c.since(look{at: began, newest: 10, oldest: 5, next: 5}); known {
		t.Error("the first look knows what changed")
	}
	for _, step := range []struct {
		after        time.Duration
		newest       int64
		oldest, next int64
		want         int64
	}{
		{time.Second, 20, 6, 7, 10},
		{5 * time.Second, 30, 6, 8, 10},
		{9 * time.Second, 40, 6, 9, 10},
		{13 * time.Second, 50, 6, 10, 10},
		{17 * time.Second, 60, 6, 11, 10},
		{21 * time.Second, 70, 12, 12, 10},
		{25 * time.Second, 80, 12, 12, 60},
		{29 * time.Second, 80, 12, 12, 70},
		{30 * time.Second, 90, 12, 12, 80},
		{31 * time.Second, 90, 12, 12, 80},
	} {
		now := look{at: began.Add(step.after), newest: step.newest, oldest: step.oldest, next: step.next}
		if _, got, known := c.since(now); !known || got != step.want {
			t.Errorf("after %s: %d, want %d", step.after, got, step.want)
		}
	}
	if _, _, known := c.since(look{at: began.Add(time.Minute), newest: 90, oldest: 4, next: 4}); known {
		t.Error("a server that counts transactions from elsewhere is compared with")
	}
	for i := range int64(3 * mostLooks) {
		at := began.Add(time.Minute + time.Duration(i)*time.Second)
		if _, got, _ := c.since(look{at: at, newest: 100 + i, oldest: 4, next: 5 + i}); got != 90 || len(c.looks) > mostLooks {
			t.Fatalf("look %d of a long transaction: changes after %d, %d looks", i, got, len(c.looks))
		}
	}
}
