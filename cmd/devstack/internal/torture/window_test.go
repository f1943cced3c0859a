//go:build unix

package torture

import (
	"testing"
	"time"
)

// TestWhatAWindowCanShow has five exchanges, of which the last is visible three seconds late, and one of another route and
// environment, which is visible twelve seconds late, and asks which counts a server could show at which instants.
func TestWhatAWindowCanShow(t *testing.T) {
	t.Parallel()
	second := time.Second.Nanoseconds()
	tr := &truth{}
	for i, at := range []int64{1, 2, 3, 4, 12} {
		e := exchange{number: i, startNS: at*second - 30e6, endNS: at * second, environment: "test", application: "crm", route: "r", failed: i%2 == 0}
		seen := span{at * second, at*second + 1e6}
		if i == 4 {
			seen = span{15 * second, 15*second + 1e6}
		}
		tr.exchanges, tr.seen = append(tr.exchanges, e), append(tr.seen, seen)
	}
	tr.exchanges = append(tr.exchanges, exchange{number: 5, startNS: 12*second - 30e6, endNS: 12 * second, environment: "other", application: "other", route: "late"})
	tr.seen = append(tr.seen, span{24 * second, 24*second + 1e6})
	count := rule{window: &windowRule{mode: modeCount, groupBy: "ENVIRONMENT", threshold: 1}}
	share := rule{window: &windowRule{mode: modeShare, groupBy: "APPLICATION", percent: 1}}
	absence := rule{condition: condition{statuses: []string{"COMPLETED", "FAILED"}}, window: &windowRule{mode: modeAbsence, groupBy: "ROUTE", threshold: 1}}
	duration := rule{condition: condition{statuses: []string{"COMPLETED", "FAILED"}}, window: &windowRule{mode: modeDuration, groupBy: "ROUTE", percentile: 50, minMS: 40}}
	for name, c := range map[string]struct {
		rule             rule
		group            string
		from, to         float64
		observed, volume int64
		want             bool
	}{
		"both that failed":                      {count, "test", 4, 5, 2, 0, true},
		"more than there are":                   {count, "test", 4, 5, 3, 0, false},
		"fewer than were visible":               {count, "test", 4, 5, 1, 0, false},
		"fewer, before":                         {count, "test", 2, 5, 1, 0, true},
		"another group":                         {count, "staging", 4, 5, 2, 0, false},
		"when they have left":                   {count, "test", 13.5, 14, 0, 0, true},
		"when one has left":                     {count, "test", 11.5, 12, 1, 0, true},
		"what is late, before it can be seen":   {count, "test", 13.5, 14, 1, 0, false},
		"what is late, when it can be seen":     {count, "test", 13.5, 15.5, 1, 0, true},
		"what is late, when it must be seen":    {count, "test", 15.5, 20, 0, 0, false},
		"after it left":                         {count, "test", 22.5, 30, 0, 0, true},
		"a share of all":                        {share, "crm", 4, 4.5, 2, 3, true},
		"a share of all that ended":             {share, "crm", 4.1, 4.5, 2, 4, true},
		"a share of fewer than were visible":    {share, "crm", 4.1, 4.5, 2, 3, false},
		"a share of more than there are":        {share, "crm", 4, 4.5, 2, 5, false},
		"none took as long":                     {duration, "r", 4.1, 4.5, 0, 4, true},
		"all took as long":                      {duration, "r", 4.1, 4.5, 4, 4, false},
		"an absence that is none":               {absence, "r", 10, 24, 0, 0, false},
		"an absence of what is waited for":      {absence, "r", 14.1, 24.5, 0, 0, false},
		"an absence of what is later than that": {absence, "late", 12.5, 23.9, 0, 0, true},
		"an absence of what came meanwhile":     {absence, "late", 14.1, 24.5, 0, 0, false},
		"an absence of what there never was":    {absence, "nowhere", 10, 20.5, 0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := question{c.group, int64(c.from * float64(second)), int64(c.to * float64(second)), c.observed, c.volume}
			if got := tr.shows(&c.rule, q); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestWhatFires(t *testing.T) {
	t.Parallel()
	share, duration := &windowRule{mode: modeShare, percent: 1.25}, &windowRule{mode: modeDuration, percentile: 95}
	for _, c := range []struct {
		rule             *windowRule
		observed, volume int64
		want             bool
	}{
		{share, 1, 80, true},
		{share, 1, 81, false},
		{share, 0, 0, false},
		{duration, 6, 100, true},
		{duration, 5, 100, false},
		{duration, 1, 19, true},
		{duration, 0, 0, false},
		{&windowRule{mode: modeCount, threshold: 3}, 3, 0, true},
		{&windowRule{mode: modeCount, threshold: 3}, 2, 0, false},
		{&windowRule{mode: modeAbsence, threshold: 1}, 0, 0, true},
		{&windowRule{mode: modeAbsence, threshold: 1}, 1, 0, false},
	} {
		if got := c.rule.fires(c.observed, c.volume); got != c.want {
			t.Errorf("%s at %d of %d: %v", c.rule.mode, c.observed, c.volume, got)
		}
	}
}
