package window_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/alerts/match"
	"tocsin/alerts/routing"
	"tocsin/evaluator/watch"
	"tocsin/evaluator/window"
	"tocsin/evaluator/window/counting"
	"tocsin/internal/windowtest"
	"tocsin/notify"
	"tocsin/rules"
)

const (
	second    = windowtest.Second
	watermark = windowtest.Watermark
)

// failure is an error of the source.
type failure string

func (f failure) Error() string { return string(f) }

const (
	errDown   = failure("connection refused")
	errPoison = failure("poison")
)

// source counts five exchanges for each rule, which is identified by its application. If its groups
// are set, they are returned instead.
type exchanges struct {
	// poison makes a query fail, down all of them.
	poison string
	down   bool
	// panics is the rule whose texts panic.
	panics string
	// hides says that the newest exchanges are not shown.
	hides bool
	// lasted is the least duration of exchanges.
	lasted int64
	groups []counting.Group
	// tallies counts the tallies, and counts records what each other query was about.
	tallies int
	counts  [][]string
}

func (s *exchanges) Tally(ctx context.Context, q counting.TallyQuery) (answer counting.Tallies, _ error) {
	if s.down {
		return answer, errDown
	}
	if q.FromNS[0] == q.ToNS {
		return answer, ctx.Err() // as when the availability of the source is tested
	}
	s.tallies++
	for _, tenant := range q.Tenants.Names {
		answer.Tallies = append(answer.Tallies, counting.Tally{
			TenantID: tenant, Status: rules.Failed, Application: "000", FromNS: q.FromNS[len(q.FromNS)-1],
			LeastNS: s.lasted, Observed: 5, NewestEndedNS: watermark - 1, NewestStartNS: watermark - 2,
		})
	}
	return answer, nil
}

func (s *exchanges) CountWindows(_ context.Context, windows []counting.Query) (counting.Counted, error) {
	if s.down {
		return counting.Counted{}, errDown
	}
	var names []string
	for _, w := range windows {
		names = append(names, w.Scope.Applications[0])
	}
	s.counts = append(s.counts, names)
	if slices.Contains(names, s.poison) {
		return counting.Counted{}, errPoison
	}
	groups := s.groups
	if groups == nil {
		groups = []counting.Group{{Observed: 5, NewestEndedNS: watermark - 1, NewestStartNS: watermark - 2}}
	}
	return counting.Counted{Groups: slices.Repeat([][]counting.Group{groups}, len(windows))}, nil
}

func (s *exchanges) Arrivals(context.Context, watch.ArrivalsQuery) (watch.Arrivals, error) {
	return watch.Arrivals{}, errors.New("no rule is about absence")
}

func (s *exchanges) Newest(_ context.Context, windows []counting.NewestQuery) ([][]rules.Exchange, error) {
	newest := make([][]rules.Exchange, len(windows))
	for i, w := range windows {
		for _, g := range w.Groups {
			e := rules.Exchange{ExecutionID: "newest of " + g.Group, StartTimeNS: g.NewestStartNS}
			if s.hides {
				e = rules.Exchange{}
			}
			newest[i] = append(newest[i], e)
		}
	}
	return newest, nil
}

func (s *exchanges) Texts(*rules.Rule, *rules.Exchange) (a, b string, _ error) { return "", "", nil }

func (s *exchanges) CountTexts(r *rules.Rule, c *alerts.Count, e *rules.Exchange) (a, b string, _ error) {
	if s.panics != "" && r.Scope.Applications[0] == s.panics {
		panic("a text that nobody expected")
	}
	return fmt.Sprintf("%d in %q", c.Observed, c.Group), e.ExecutionID, nil
}

func newEvaluator(s *exchanges) *window.Evaluator {
	return window.New(window.Options{Source: s, Texts: s, Logger: slog.New(slog.DiscardHandler)})
}

// evaluate returns the names of the rules that were evaluated, and what became of them.
func evaluate(t *testing.T, e *window.Evaluator, r window.Request) ([]string, window.Outcome) {
	t.Helper()
	outcome := e.Evaluate(t.Context(), r)
	return names(outcome.Evaluated), outcome
}

func names(ids []uuid.UUID) []string {
	list := []string{}
	for _, id := range ids {
		list = append(list, fmt.Sprintf("%03d", int(id[14])<<8+int(id[15])))
	}
	slices.Sort(list)
	return list
}

// TestPercentileIsReadWhenAnAlertChanges checks that the tally only shows that a bound is reached;
// the percentile itself is read by the query for the condition.
func TestPercentileIsReadWhenAnAlertChanges(t *testing.T) {
	list := windowtest.Some(8)
	for i := range list {
		list[i].Scope.Applications = []string{"000"}
		list[i].FireMode, list[i].Threshold, list[i].Percentile, list[i].MinVolume = rules.DurationInWindow, 0, 95, 5
		list[i].DurationMS = int64(1 + i)
	}
	s := &exchanges{lasted: 3e6, groups: []counting.Group{{Observed: 5, Volume: 5, DurationNS: 7e6, NewestEndedNS: watermark - 1, NewestStartNS: watermark - 2}}}
	_, outcome := evaluate(t, newEvaluator(s), windowtest.Request(windowtest.Plain(list)))
	if s.tallies != 1 || len(s.counts) != 1 || len(s.counts[0]) != 3 || len(outcome.Changes) != 3 || len(outcome.Evaluated) != 8 {
		t.Fatalf("%d tallies, counts of %v, %d alerts", s.tallies, s.counts, len(outcome.Changes))
	}
	for i := range outcome.Changes {
		if c := outcome.Changes[i].Instance.Count; c.DurationNS != 7e6 || c.Volume != 5 {
			t.Errorf("%+v", c)
		}
	}
}

// TestWhatCannotBeCountedFails has a rule whose query fails, and a source that is unavailable.
func TestWhatCannotBeCountedFails(t *testing.T) {
	s := &exchanges{poison: "001"}
	engine := newEvaluator(s)
	if _, outcome := evaluate(t, engine, windowtest.Request(windowtest.Some(3))); len(outcome.Failed) > 0 {
		t.Errorf("failed at once: %v", outcome.Failed)
	}
	got, outcome := evaluate(t, engine, windowtest.Request(windowtest.Some(3)))
	if diff := cmp.Diff([]string{"000", "002"}, got); diff != "" || outcome.SourceErr != nil || len(outcome.Changes) != 2 {
		t.Errorf("%v, %d changes\n%s", outcome.SourceErr, len(outcome.Changes), diff)
	}
	if len(outcome.Failed) != 1 || !errors.Is(outcome.Failed[windowtest.RuleOf(1, "").ID], errPoison) {
		t.Errorf("failed %v", outcome.Failed)
	}
	s.down = true
	if got, outcome = evaluate(t, newEvaluator(s), windowtest.Request(windowtest.Some(3))); !errors.Is(outcome.SourceErr, errDown) || len(got)+len(outcome.Failed) > 0 {
		t.Errorf("%v, %v, %v", outcome.SourceErr, got, outcome.Failed)
	}
}

// TestOneRuleThatPanicsFailsAlone lets the texts of a rule panic: all others raise their alerts.
func TestOneRuleThatPanicsFailsAlone(t *testing.T) {
	s := &exchanges{panics: "042"}
	e := newEvaluator(s)
	for range 2 {
		got, outcome := evaluate(t, e, windowtest.Request(windowtest.Some(120)))
		if diff := cmp.Diff(windowtest.UpTo(120, "042"), got); diff != "" || outcome.SourceErr != nil || len(outcome.Changes) != 119 {
			t.Errorf("%v, %d changes\n%s", outcome.SourceErr, len(outcome.Changes), diff)
		}
		if why := outcome.Failed[windowtest.RuleOf(42, "").ID]; len(outcome.Failed) != 1 || !strings.Contains(fmt.Sprint(why), "panic: ") {
			t.Errorf("failed %v", outcome.Failed)
		}
	}
}

// TestWhatWasCountedIsConcluded has a count that takes all the available time.
func TestWhatWasCountedIsConcluded(t *testing.T) {
	for name, list := range map[string][]counting.Compiled{"by conditions": windowtest.Some(3), "by a tally": windowtest.Plain(windowtest.Some(10))} {
		t.Run(name, func(t *testing.T) {
			s := &exchanges{}
			r := windowtest.Request(list)
			r.Over = func() bool { return len(s.counts)+s.tallies > 0 }
			got, outcome := evaluate(t, newEvaluator(s), r)
			if len(got) != len(list) || len(outcome.Changes) == 0 || outcome.Changes[0].Instance.Exchange.ExecutionID == "" {
				t.Errorf("%d rules of %d were evaluated, %d changes", len(got), len(list), len(outcome.Changes))
			}
		})
	}
}

// steps evaluates one rule and returns its steps as text.
func steps(t *testing.T, s *exchanges, rule counting.Compiled, open ...alerts.OpenAlert) []string {
	t.Helper()
	r := windowtest.Request([]counting.Compiled{rule})
	for i := range open {
		open[i].RuleID = rule.ID
	}
	r.Open = open
	_, outcome := evaluate(t, newEvaluator(s), r)
	if len(outcome.Evaluated) != 1 {
		t.Fatalf("%+v", outcome)
	}
	var list []string
	for _, c := range outcome.Changes {
		text := fmt.Sprintf("%v %s %d", c.Step, c.Instance.Count.Group, c.Instance.Count.Observed)
		for _, n := range c.Notifications {
			text += " " + string(n.Reason)
			if n.AlertID != c.Instance.ID || n.ID == uuid.Nil {
				t.Errorf("%+v is not of %v", n, c.Instance.ID)
			}
		}
		list = append(list, text)
	}
	return list
}

// openAlert returns an alert that has been open for an hour; a resolved one is held.
func openAlert(group string, state alerts.State) alerts.OpenAlert {
	return alerts.OpenAlert{ID: uuid.New(), Group: group, Open: alerts.Open{
		State: state, Since: time.Unix(0, watermark).Add(-time.Hour), Held: state == alerts.Resolved,
	}}
}

func TestStepsOfGroups(t *testing.T) {
	rule := windowtest.RuleOf(0, "default")
	rule.GroupBy, rule.NotifyOnResolve = rules.GroupByRoute, true
	s := &exchanges{groups: []counting.Group{{Group: "new", Observed: 7}, {Group: "open", Observed: 6}, {Group: "held", Observed: 5}, {Group: "\x00", Observed: 5}, {Group: "below", Observed: 4}}}
	got := steps(t, s, rule, openAlert("open", alerts.Firing), openAlert("held", alerts.Resolved),
		openAlert("below", alerts.Acknowledged), openAlert("gone", alerts.Firing), openAlert("released", alerts.Resolved))
	want := []string{"clear below 4", "clear gone 0", "release released 0", "raise new 7 FIRED", "raise hex:00 5 FIRED"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestRoutedAlertsKeepTheirRoute switches a rule to the routing policy: new alerts are routed by
// group, and alerts that already fired keep their destination.
func TestRoutedAlertsKeepTheirRoute(t *testing.T) {
	rule := windowtest.RuleOf(0, "default")
	rule.GroupBy, rule.NotifyOnResolve, rule.ReNotifyMinutes, rule.UseRoutingPolicy, rule.WebhookIDs = rules.GroupByRoute, true, 1, true, nil
	to := func(ids ...byte) (list []uuid.UUID) {
		for _, id := range ids {
			list = append(list, uuid.UUID{id})
		}
		return list
	}
	var err error
	rule.Router, err = routing.Compile(3, routing.Policy{
		Routes:            []routing.Route{{Name: "new", Match: match.Match{Scope: rules.Scope{Routes: []string{"new", "fires"}}}, WebhookIDs: to(1, 2)}},
		DefaultWebhookIDs: to(3),
		DefaultEscalation: []alerts.EscalationStep{{AfterMinutes: 10, WebhookIDs: to(6)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &exchanges{groups: []counting.Group{{Group: "new", Observed: 7}, {Group: "other", Observed: 7}, {Group: "fires", Observed: 6}, {Group: "routed", Observed: 5}, {Group: "unrouted", Observed: 5}}}
	waits, routed, unrouted, gone := openAlert("fires", alerts.Pending), openAlert("routed", alerts.Firing), openAlert("unrouted", alerts.Firing), openAlert("gone", alerts.Firing)
	routed.Routing = &alerts.Routing{Version: 1, DefaultWebhookIDs: to(4)}
	gone.Routing = &alerts.Routing{Version: 1, Routes: []alerts.RouteTaken{{Name: "former", WebhookIDs: to(5)}}}
	r := windowtest.Request([]counting.Compiled{rule})
	r.Open = []alerts.OpenAlert{waits, routed, unrouted, gone}
	for i := range r.Open {
		r.Open[i].RuleID = rule.ID
	}
	_, outcome := evaluate(t, newEvaluator(s), r)
	var got []string
	for _, c := range outcome.Changes {
		text := fmt.Sprintf("%v %s to", c.Step, c.Instance.Count.Group)
		for _, n := range c.Notifications {
			text += fmt.Sprintf(" %d", n.WebhookID[0])
		}
		if a := c.Instance.Routing; a != nil {
			text += fmt.Sprintf(", %s by version %d", a.Answer(), a.Version)
			if a.Escalates() {
				text += ", escalates"
			}
		}
		got = append(got, text)
	}
	want := []string{
		"fire fires to 1 2, ROUTED by version 3", "remind routed to 4", "remind unrouted to 3, DEFAULT by version 3", "clear gone to",
		"raise new to 1 2, ROUTED by version 3", "raise other to 3, DEFAULT by version 3, escalates",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestServerThatLagsResolvesNothing queries a server that does not show yet what an alert is about.
func TestServerThatLagsResolvesNothing(t *testing.T) {
	rule := windowtest.RuleOf(0, "t")
	alert := openAlert("", alerts.Firing)
	alert.NewestEndedNS, alert.NewestStartNS = watermark-10*second, watermark-11*second
	slower := windowtest.Compiled(new(*rule.Rule))
	slower.FireMode, slower.Threshold, slower.Percentile, slower.DurationMS, slower.MinVolume = rules.DurationInWindow, 0, 50, 900, 1
	slow := alert
	slow.LeastNS = 900e6
	annotated, raised, armed := windowtest.Compiled(new(*rule.Rule)), windowtest.Compiled(new(*rule.Rule)), windowtest.Compiled(new(*rule.Rule))
	annotated.Version, annotated.Note = 2, "see the runbook"
	raised.Version, raised.Threshold = 2, 50
	armed.Version, armed.ArmedSinceNS = 2, watermark-9*second
	held := func(o *alerts.OpenAlert) { o.State, o.Held = alerts.Resolved, true }
	sees := func(ended, start int64) []counting.Group {
		return []counting.Group{{Observed: 1, NewestEndedNS: watermark - ended, NewestStartNS: watermark - start}}
	}
	with := func(change func(*alerts.OpenAlert)) alerts.OpenAlert {
		changed := alert
		change(&changed)
		return changed
	}
	for name, c := range map[string]struct {
		groups []counting.Group
		open   alerts.OpenAlert
		want   []string
		// edited is the rule after an edit.
		edited *counting.Compiled
	}{
		"sees nothing":              {[]counting.Group{}, alert, nil, nil},
		"sees an older one":         {sees(11*second, 12*second), alert, nil, nil},
		"sees one that began first": {sees(10*second, 12*second), alert, nil, nil},
		"sees it":                   {sees(10*second, 11*second), alert, []string{"clear  1"}, nil},
		"sees a newer one":          {sees(9*second, 30*second), alert, []string{"clear  1"}, nil},
		"its clock is behind":       {[]counting.Group{}, with(func(o *alerts.OpenAlert) { o.NewestEndedNS = watermark }), nil, nil},
		"it has left the window":    {[]counting.Group{}, with(func(o *alerts.OpenAlert) { o.NewestEndedNS = watermark - 60*second - 1 }), []string{"clear  0"}, nil},
		"it began too early":        {[]counting.Group{}, with(func(o *alerts.OpenAlert) { o.NewestStartNS = counting.StartFromNS(60, watermark) - 1 }), []string{"clear  0"}, nil},
		"pending":                   {[]counting.Group{}, with(func(o *alerts.OpenAlert) { o.State = alerts.Pending }), nil, nil},
		"held":                      {[]counting.Group{}, with(held), nil, nil},
		"the note was edited":       {[]counting.Group{}, alert, nil, &annotated},
		"the threshold was edited":  {[]counting.Group{}, alert, nil, &raised},
		"the scope was edited":      {[]counting.Group{}, with(held), []string{"release  0"}, &armed},
		"a duration":                {[]counting.Group{}, slow, nil, &slower},
		"a duration that was 800":   {[]counting.Group{}, with(func(o *alerts.OpenAlert) { o.LeastNS = 800e6 }), []string{"clear  0"}, &slower},
		"a duration that was 1000":  {[]counting.Group{}, with(func(o *alerts.OpenAlert) { o.LeastNS = 1000e6 }), nil, &slower},
	} {
		t.Run(name, func(t *testing.T) {
			if c.edited == nil {
				c.edited = &rule
			}
			if diff := cmp.Diff(c.want, steps(t, &exchanges{groups: c.groups}, *c.edited, c.open)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestEditKeepsWhatFires edits the condition half a window ago.
func TestEditKeepsWhatFires(t *testing.T) {
	for name, c := range map[string]struct {
		armed time.Duration
		want  []string
	}{
		"half a window ago":  {30 * time.Second, nil},
		"a window ago, less": {time.Minute - time.Nanosecond, nil},
		"a window ago":       {time.Minute, []string{"clear  0"}},
	} {
		for filter, plainly := range map[string]bool{"conditions": false, "tallies": true} {
			rule := windowtest.RuleOf(0, "default")
			rule.ArmedSinceNS = watermark - c.armed.Nanoseconds()
			s := &exchanges{groups: []counting.Group{}}
			list := []counting.Compiled{rule}
			if plainly {
				// Seven others of which the tally counts none: none of them queries for failures.
				for i := 1; i < 8; i++ {
					list = append(list, windowtest.RuleOf(i, "default"))
				}
				list[0].Scope.Applications = []string{"elsewhere"}
				windowtest.Plain(list)
			}
			r := windowtest.Request(list)
			r.Open = []alerts.OpenAlert{openAlert("", alerts.Firing)}
			r.Open[0].RuleID = rule.ID
			_, outcome := evaluate(t, newEvaluator(s), r)
			var got []string
			for _, c := range outcome.Changes {
				got = append(got, fmt.Sprintf("%v %s %d", c.Step, c.Instance.Count.Group, c.Instance.Count.Observed))
			}
			if diff := cmp.Diff(c.want, got); diff != "" || len(outcome.Evaluated) != len(list) {
				t.Errorf("edited %s, by %s: %d evaluated\n%s", name, filter, len(outcome.Evaluated), diff)
			}
		}
	}
}

// TestIDsAreDerived evaluates the same twice.
func TestIDsAreDerived(t *testing.T) {
	r := windowtest.Request(windowtest.Some(1))
	_, first := evaluate(t, newEvaluator(&exchanges{}), r)
	_, again := evaluate(t, newEvaluator(&exchanges{}), r)
	if diff := cmp.Diff(first.Changes, again.Changes); diff != "" {
		t.Error(diff)
	}
	alert := first.Changes[0].Instance.ID
	if n := first.Changes[0].Notifications[0]; n.ID != notify.ID(alert, uuid.UUID{1}, notify.ReasonFired, 0) {
		t.Errorf("%+v", n)
	}
	reminding := windowtest.RuleOf(0, "default")
	reminding.ReNotifyMinutes = 1
	r = windowtest.Request([]counting.Compiled{reminding})
	r.Open = []alerts.OpenAlert{openAlert("", alerts.Firing)}
	r.Open[0].RuleID, r.Open[0].Reminders = reminding.ID, 3
	_, reminded := evaluate(t, newEvaluator(&exchanges{}), r)
	if n := reminded.Changes[0].Notifications[0]; n.ID != notify.ID(r.Open[0].ID, uuid.UUID{1}, notify.ReasonReminder, 3) {
		t.Errorf("%+v", n)
	}
}

// TestMoreGroupsThanAlerts has more groups that reach the threshold than may have alerts. An alert
// that ends makes room for another one, and one that stays open does not.
func TestMoreGroupsThanAlerts(t *testing.T) {
	rule := windowtest.RuleOf(0, "default")
	rule.GroupBy, rule.ArmedSinceNS = rules.GroupByRoute, watermark-30*second
	s := &exchanges{}
	for i := range 1001 {
		s.groups = append(s.groups, counting.Group{Group: fmt.Sprint(i), Observed: int64(2000 - i)})
	}
	ends, stays := openAlert("ends", alerts.Pending), openAlert("stays", alerts.Firing)
	for name, c := range map[string]struct {
		open    []alerts.OpenAlert
		below   bool
		changes int
		first   alerts.Step
		problem bool
	}{
		"one ends":                   {[]alerts.OpenAlert{ends}, false, 1001, alerts.Drop, true},
		"one stays":                  {[]alerts.OpenAlert{stays}, false, 999, alerts.Raise, true},
		"one of the others":          {[]alerts.OpenAlert{ends}, true, 1001, alerts.Drop, false},
		"one stays and one is below": {[]alerts.OpenAlert{stays}, true, 999, alerts.Raise, true},
	} {
		t.Run(name, func(t *testing.T) {
			s.groups[1000].Observed = 1000
			if c.below {
				s.groups[1000].Observed = 4
			}
			r := windowtest.Request([]counting.Compiled{rule})
			r.Open = c.open
			r.Open[0].RuleID = rule.ID
			_, outcome := evaluate(t, newEvaluator(s), r)
			if len(outcome.Changes) != c.changes || outcome.Changes[0].Step != c.first || strings.Contains(outcome.Problems[rule.ID], "1000 groups have an alert") != c.problem {
				t.Errorf("%d changes, the first a %v, %v", len(outcome.Changes), outcome.Changes[0].Step, outcome.Problems)
			}
		})
	}
}

// TestServerThatLagsResolvesNothingAmongManyGroups has a thousand other groups.
func TestServerThatLagsResolvesNothingAmongManyGroups(t *testing.T) {
	rule := windowtest.RuleOf(0, "default")
	rule.GroupBy = rules.GroupByRoute
	s := &exchanges{groups: []counting.Group{{Group: "lags", Observed: 2, NewestEndedNS: watermark - 20*second, NewestStartNS: watermark - 21*second}}}
	for i := range 1001 {
		s.groups = append(s.groups, counting.Group{Group: fmt.Sprint(i), Observed: 4})
	}
	alert := openAlert("lags", alerts.Firing)
	alert.NewestEndedNS, alert.NewestStartNS = watermark-10*second, watermark-11*second
	if diff := cmp.Diff([]string(nil), steps(t, s, rule, alert)); diff != "" {
		t.Error(diff)
	}
}

// TestAlertKeepsTheInstantsOfAnExchangeThatAServerDoesNotShow has a server without lag count, and
// one that lags asked for the newest exchange.
func TestAlertKeepsTheInstantsOfAnExchangeThatAServerDoesNotShow(t *testing.T) {
	s := &exchanges{hides: true}
	rule := windowtest.RuleOf(0, "default")
	_, outcome := evaluate(t, newEvaluator(s), windowtest.Request([]counting.Compiled{rule}))
	if len(outcome.Changes) != 1 || outcome.Changes[0].Step != alerts.Raise {
		t.Fatalf("changes %+v", outcome.Changes)
	}
	raised := outcome.Changes[0].Instance.Exchange
	if raised.ExecutionID != "" || raised.EndedNS() != watermark-1 || raised.StartTimeNS != watermark-2 {
		t.Errorf("raised about %+v", raised)
	}
	// The one that lags counts nothing.
	s.groups = []counting.Group{}
	alert := openAlert("", alerts.Firing)
	alert.NewestEndedNS, alert.NewestStartNS = raised.EndedNS(), raised.StartTimeNS
	if diff := cmp.Diff([]string(nil), steps(t, s, rule, alert)); diff != "" {
		t.Error(diff)
	}
}
