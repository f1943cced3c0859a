//go:build unix

package torture

import (
	"testing"
	"time"
)

// TestLossesAreNoExcuse checks that the checker only accepts what a failover may lose: messages of
// the last moments before it, and only those that may get another id.
func TestLossesAreNoExcuse(t *testing.T) {
	t.Parallel()
	const second = int64(time.Second)
	failing := exchange{number: 7, startNS: 1 * second, endNS: 2 * second, failed: true}
	l := &life{
		id: "rule", rule: rule{lookBackSeconds: hour}, bound: []binding{{1, []string{"a", "b"}}, {2, []string{"b"}}},
		periods: []period{{began: span{0, 0}}},
	}
	about := request{at: time.Unix(10, 0), read: true, accepted: true, hook: "a", arrival: arrival{ruleID: "rule", correlation: failing.correlation()}}
	changed := func(change func(*request)) request {
		r := about
		change(&r)
		return r
	}
	for name, test := range map[string]struct {
		request request
		// version is the rule version of the alert that exists at the end; 0 means that there is
		// none.
		version     int64
		synchronous bool
		want        bool
	}{
		"of an alert that is there":                 {request: about, version: 1},
		"of an alert that is missing":               {request: about},
		"of an alert of a version without the hook": {request: about, version: 2, want: true},
		"of an exchange that the rule does not want": {
			request: changed(func(r *request) { r.correlation = "x-8" }),
		},
		"a digest":                    {request: changed(func(r *request) { r.digest, r.correlation = true, "" }), want: true},
		"of a window":                 {request: changed(func(r *request) { r.correlation = "" }), want: true},
		"not read":                    {request: changed(func(r *request) { r.read = false }), want: true},
		"a digest too early":          {request: changed(func(r *request) { r.at, r.digest = time.Unix(8, 0), true })},
		"a digest too late":           {request: changed(func(r *request) { r.at, r.digest = time.Unix(20, 0), true })},
		"a digest that nothing loses": {request: changed(func(r *request) { r.digest = true }), synchronous: true},
	} {
		w := &world{truth: &truth{
			exchanges: []exchange{failing}, seen: []span{{2 * second, 2 * second}}, lives: []*life{l},
			losses: []loss{{when: span{9 * second, 12 * second}, synchronous: test.synchronous}},
		}}
		found := &tables{}
		if test.version > 0 {
			found.alerts = []alert{{ID: "alert", RuleID: "rule", RuleVersion: test.version, About: anExchange, Correlation: failing.correlation()}}
		}
		if got := w.takenBack(found, []request{test.request}); got != test.want {
			t.Errorf("%s: may have been taken back: %v", name, got)
		}
	}
}

// TestAlertsKeepTheirIDs gives the checker an alert that exists again under another id.
func TestAlertsKeepTheirIDs(t *testing.T) {
	t.Parallel()
	w := &world{truth: &truth{losses: []loss{{alerts: []lost{{"one", "rule", "x-1"}, {"two", "rule", "x-2"}, {"three", "rule", "x-3"}}}}}}
	var report Report
	w.checkLosses(&report, &tables{alerts: []alert{
		{ID: "one", RuleID: "rule", About: anExchange, Correlation: "x-1"}, {ID: "other", RuleID: "rule", About: anExchange, Correlation: "x-2"},
	}})
	if report.Lost != 3 || report.found[renamed] != 1 {
		t.Errorf("%d lost, %d of another id: %v", report.Lost, report.found[renamed], &report)
	}
}
