//go:build unix

package torture

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPassesProveAnEvaluation has one failure a second from the first to the 14th second, of which a window holds ten, and
// asks whether passes at some seconds prove that a rule was evaluated while it was above its threshold for certain.
func TestPassesProveAnEvaluation(t *testing.T) {
	t.Parallel()
	const second = int64(time.Second)
	traffic := func(late int64) *truth {
		tr := &truth{}
		for at := int64(1); at <= 14; at++ {
			tr.exchanges = append(tr.exchanges, exchange{number: int(at), startNS: at*second - 30e6, endNS: at * second, environment: "test", failed: true})
			tr.seen = append(tr.seen, span{(at + late) * second, (at + late) * second})
		}
		return tr
	}
	hidden := traffic(0)
	for i := range hidden.seen {
		hidden.seen[i] = span{}
	}
	mixed := traffic(0)
	for i := range mixed.exchanges {
		mixed.exchanges[i].failed = i%2 == 0
	}
	count := windowRule{mode: modeCount, groupBy: "ENVIRONMENT", threshold: 3}
	share := windowRule{mode: modeShare, groupBy: "ENVIRONMENT", percent: 40}
	for name, c := range map[string]struct {
		truth  *truth
		rule   windowRule
		group  string
		armed  int64
		passes []float64
		alone  bool
		want   bool
	}{
		"no pass":                         {truth: traffic(0), rule: count},
		"one pass":                        {truth: traffic(0), rule: count, passes: []float64{8}},
		"two passes":                      {truth: traffic(0), rule: count, passes: []float64{8, 12}},
		"many passes":                     {truth: traffic(0), rule: count, passes: []float64{4, 4.5, 6, 8.5, 9, 9.5, 11, 12, 14}, want: true},
		"three passes":                    {truth: traffic(0), rule: count, passes: []float64{4, 8.7, 13.4}, want: true},
		"three passes, one by one":        {truth: traffic(0), rule: count, passes: []float64{4, 8.7, 13.4}, alone: true},
		"commits of one long pass":        {truth: traffic(0), rule: count, passes: []float64{4, 6.1, 8.2}},
		"many commits of one pass":        {truth: traffic(0), rule: count, passes: []float64{5, 5.1, 5.2, 5.3, 5.4, 5.5}},
		"passes before the threshold":     {truth: traffic(0), rule: count, passes: []float64{0.1, 2.2, 2.9, 8}},
		"passes after the exchanges":      {truth: traffic(0), rule: count, passes: []float64{15.5, 20.2, 24.9}},
		"another group":                   {truth: traffic(0), rule: count, group: "staging", passes: []float64{4, 8.7, 13.4}},
		"before they were visible":        {truth: traffic(6), rule: count, passes: []float64{2, 6.7, 11.4}},
		"when they were visible":          {truth: traffic(2), rule: count, passes: []float64{5, 9.7, 14.4}, want: true},
		"never visible":                   {truth: hidden, rule: count, passes: []float64{4, 8.7, 13.4}},
		"before the rule was armed":       {truth: traffic(0), rule: count, armed: 12, passes: []float64{4, 8.7, 13.4}},
		"a share":                         {truth: mixed, rule: share, passes: []float64{4, 8.7, 13.4}, want: true},
		"a share that falls now and then": {truth: mixed, rule: windowRule{mode: modeShare, groupBy: "ENVIRONMENT", percent: 55}, passes: []float64{4.5, 9.3, 14.2}},
		"a share of what may have been invisible": {truth: func() *truth {
			tr := traffic(0)
			tr.seen[8], tr.seen[6], tr.seen[4], tr.seen[2] = span{}, span{}, span{}, span{}
			return tr
		}(), rule: windowRule{mode: modeShare, groupBy: "ENVIRONMENT", percent: 90}, passes: []float64{4, 8.7, 13.4}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &life{rule: rule{intervalSeconds: 1, window: &c.rule}, periods: []period{{began: span{c.armed * second, c.armed * second}}}}
			w := &world{replicas: []*replica{{log: logOf(t, c.alone)}}}
			needed, err := w.passesNeeded()
			if err != nil {
				t.Fatal(err)
			}
			var passes []int64
			for _, at := range c.passes {
				passes = append(passes, int64(at*float64(second)))
			}
			if got := c.truth.evaluatedAbove(l, map[bool]string{true: "test", false: c.group}[c.group == ""], passes, needed, 15*second); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// logOf writes the log of a replica, which says that it counts window rules one by one, or not.
func logOf(t *testing.T, alone bool) *os.File {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "replica.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	if alone {
		_, err = log.WriteString(`{"level":"WARN","msg":"` + oneByOne + ` until they answer in time"}`)
	}
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// TestTheProductSaysThatItCountsOneByOne holds the text that the checker looks for to the source.
func TestTheProductSaysThatItCountsOneByOne(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../../../../evaluator/window/counting/counting.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(source), `"`+oneByOne) {
		t.Errorf("no message of %s begins with %q", "evaluator/window/counting", oneByOne)
	}
}

// TestAnAlertFollowsAnother holds that a second alert is right only where the value fell below the threshold between them.
func TestAnAlertFollowsAnother(t *testing.T) {
	t.Parallel()
	const second = int64(time.Second)
	tr := &truth{}
	for i, at := range []int64{1, 2, 14, 15} {
		tr.exchanges = append(tr.exchanges, exchange{number: i, startNS: at*second - 30e6, endNS: at * second, environment: "test", failed: true})
		tr.seen = append(tr.seen, span{at * second, at * second})
	}
	w := &world{truth: tr}
	l := &life{rule: rule{window: &windowRule{mode: modeCount, groupBy: "ENVIRONMENT", threshold: 2}}}
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	resolved := func(seconds, observed int64) *alert {
		ended := at(seconds)
		return &alert{Group: "test", FiredAt: at(4), ResolvedAt: &ended, Observed: observed}
	}
	next := &alert{Group: "test", FiredAt: at(16)}
	for name, c := range map[string]struct {
		first *alert
		want  bool
	}{
		"it fell":                    {resolved(13, 0), true},
		"one of the two was left":    {resolved(12, 1), true},
		"it never was as low":        {resolved(9, 1), false},
		"it was above":               {resolved(13, 2), false},
		"it resolved after the next": {resolved(17, 0), false},
		"it is still open":           {&alert{Group: "test", FiredAt: at(4)}, false},
	} {
		if got := w.fellBetween(l, c.first, next); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
