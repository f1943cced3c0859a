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
