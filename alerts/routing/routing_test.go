package routing_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"tocsin/alerts"
	"tocsin/alerts/match"
	"tocsin/alerts/routing"
	"tocsin/internal/fault"
	"tocsin/rules"
)

var one, two, three = uuid.UUID{1}, uuid.UUID{2}, uuid.UUID{3} //nolint:gochecknoglobals // webhooks

func app(names ...string) match.Match {
	return match.Match{Scope: rules.Scope{Applications: names}}
}

func ids(list ...uuid.UUID) []uuid.UUID { return list }

func about(application string) *match.Subject {
	return &match.Subject{Severity: rules.Critical, Exchange: &rules.Exchange{Status: rules.Failed, Application: application}}
}

func step(minutes int, webhooks ...uuid.UUID) alerts.EscalationStep {
	return alerts.EscalationStep{AfterMinutes: minutes, WebhookIDs: webhooks}
}

func compiled(t interface{ Fatal(args ...any) }, p routing.Policy) *routing.Router {
	r, err := routing.Compile(7, p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAnAlertWalksTheRoutes(t *testing.T) {
	t.Parallel()
	orders := routing.Route{Name: "orders", Match: app("orders"), WebhookIDs: ids(one)}
	archive := routing.Route{Name: "archive", WebhookIDs: ids(two, one), Continue: true}
	silent := routing.Route{Name: "silent", Match: app("orders")}
	for name, c := range map[string]struct {
		policy   routing.Policy
		about    string
		answer   alerts.RoutingAnswer
		webhooks []uuid.UUID
		verdicts []routing.Verdict
	}{
		"it stops at the first that matches": {
			policy: routing.Policy{Routes: []routing.Route{orders, {Name: "all", WebhookIDs: ids(three)}}}, about: "orders",
			answer: alerts.Routed, webhooks: ids(one), verdicts: []routing.Verdict{routing.Taken, routing.NotReached},
		},
		"it passes by what does not match": {
			policy: routing.Policy{Routes: []routing.Route{orders, {Name: "all", WebhookIDs: ids(three)}}}, about: "billing",
			answer: alerts.Routed, webhooks: ids(three), verdicts: []routing.Verdict{routing.NotMatched, routing.Taken},
		},
		"it goes on where a route continues; a webhook gets one message": {
			policy: routing.Policy{Routes: []routing.Route{archive, orders}}, about: "orders",
			answer: alerts.Routed, webhooks: ids(two, one), verdicts: []routing.Verdict{routing.Taken, routing.Taken},
		},
		"what took a route that continues is not for the default": {
			policy: routing.Policy{Routes: []routing.Route{archive, orders}, DefaultWebhookIDs: ids(three)}, about: "billing",
			answer: alerts.Routed, webhooks: ids(two, one), verdicts: []routing.Verdict{routing.Taken, routing.NotMatched},
		},
		"the default": {
			policy: routing.Policy{Routes: []routing.Route{orders}, DefaultWebhookIDs: ids(three)}, about: "billing",
			answer: alerts.RoutedByDefault, webhooks: ids(three), verdicts: []routing.Verdict{routing.NotMatched},
		},
		"no route and no default": {
			policy: routing.Policy{Routes: []routing.Route{orders}}, about: "billing",
			answer: alerts.NoRoute, webhooks: nil, verdicts: []routing.Verdict{routing.NotMatched},
		},
		"a route to nobody is an answer, too": {
			policy: routing.Policy{Routes: []routing.Route{silent}, DefaultWebhookIDs: ids(three)}, about: "orders",
			answer: alerts.Routed, webhooks: nil, verdicts: []routing.Verdict{routing.Taken},
		},
		"the empty policy": {about: "orders", answer: alerts.NoRoute, verdicts: []routing.Verdict{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := compiled(t, c.policy)
			got := r.Route(about(c.about))
			if got.Answer() != c.answer || !slices.Equal(got.WebhookIDs(), c.webhooks) || got.Version != 7 {
				t.Errorf("%s to %v by version %d, want %s to %v", got.Answer(), got.WebhookIDs(), got.Version, c.answer, c.webhooks)
			}
			verdicts := []routing.Verdict{}
			for _, step := range r.Explain(about(c.about)) {
				verdicts = append(verdicts, step.Verdict)
			}
			if !slices.Equal(verdicts, c.verdicts) {
				t.Errorf("explained as %v, want %v", verdicts, c.verdicts)
			}
		})
	}
}

// TestTheAnswerIsTheOneThatIsExplained compares the decision, its explanation and a naive reading
// of the policy.
func TestTheAnswerIsTheOneThatIsExplained(t *testing.T) {
	t.Parallel()
	hooks := rapid.SliceOfN(rapid.SampledFrom(ids(one, two, three)), 0, 3)
	apps := rapid.SliceOfN(rapid.SampledFrom([]string{"orders", "billing", "o*"}), 0, 2)
	rapid.Check(t, func(t *rapid.T) {
		var p routing.Policy
		for n := range rapid.IntRange(0, 5).Draw(t, "routes") {
			p.Routes = append(p.Routes, routing.Route{
				Name: fmt.Sprint(n), Match: app(apps.Draw(t, "applications")...), WebhookIDs: hooks.Draw(t, "webhooks"), Continue: rapid.Bool().Draw(t, "continue"),
			})
		}
		p.DefaultWebhookIDs = hooks.Draw(t, "default")
		r := compiled(t, p)
		name := rapid.SampledFrom([]string{"orders", "billing", "other"}).Draw(t, "application")
		got := r.Route(about(name))

		want, taken, ended := map[uuid.UUID]bool{}, []string{}, false
		for _, route := range p.Routes {
			a := route.Match.Scope.Applications
			matches := len(a) == 0 || slices.Contains(a, name) || slices.Contains(a, "o*") && name[0] == 'o'
			if ended || !matches {
				continue
			}
			taken, ended = append(taken, route.Name), !route.Continue
			for _, id := range route.WebhookIDs {
				want[id] = true
			}
		}
		if len(taken) == 0 {
			for _, id := range p.DefaultWebhookIDs {
				want[id] = true
			}
		}
		list := got.WebhookIDs()
		for _, id := range list {
			if !want[id] {
				t.Fatalf("it goes to %s", id)
			}
		}
		if len(list) != len(want) {
			t.Fatalf("it goes to %v, want each of %v once", list, want)
		}
		explained := []string{}
		for _, step := range r.Explain(about(name)) {
			if step.Verdict == routing.Taken {
				explained = append(explained, step.Name)
			}
			if (step.Verdict == routing.NotMatched) != (len(step.Unmet) > 0) {
				t.Fatalf("%s is %s because of %v", step.Name, step.Verdict, step.Unmet)
			}
		}
		stored := []string{}
		for _, route := range got.Routes {
			stored = append(stored, route.Name)
		}
		if !slices.Equal(explained, taken) || !slices.Equal(stored, taken) {
			t.Fatalf("taken %v, explained %v, stored %v", taken, explained, stored)
		}
	})
}

func TestAPolicyIsChecked(t *testing.T) {
	t.Parallel()
	var many []uuid.UUID
	for i := range routing.MaxWebhooks + 1 {
		many = append(many, uuid.UUID{9, byte(i)})
	}
	split := func(list []uuid.UUID) (routes []routing.Route) {
		for chunk := range slices.Chunk(list, 20) {
			routes = append(routes, routing.Route{Name: fmt.Sprint(len(routes)), Match: app("a"), WebhookIDs: chunk})
		}
		return routes
	}
	for name, c := range map[string]struct {
		policy routing.Policy
		want   []string
	}{
		"nothing":      {},
		"one that can": {policy: routing.Policy{Routes: split(many[:100]), DefaultWebhookIDs: many[:20]}},
		"names": {
			routing.Policy{Routes: []routing.Route{{Match: app("a")}, {Name: "b", Match: app("a")}, {Name: "b", Match: app("a")}}},
			[]string{"routes[0].name required", "routes[2].name unique"},
		},
		"what is never reached": {
			routing.Policy{Routes: []routing.Route{{Name: "archive", Continue: true}, {Name: "all"}, {Name: "never", Match: app("a")}}},
			[]string{"routes[2].match unreachable"},
		},
		"a condition that cannot be used": {
			routing.Policy{Routes: []routing.Route{{Name: "a", Match: match.Match{Filter: rules.Filter{ErrorMessageMatches: "("}}}}},
			[]string{"routes[0].match.filter.errorMessageMatches regexp"},
		},
		"a webhook twice": {
			routing.Policy{Routes: []routing.Route{{Name: "a", WebhookIDs: ids(one, one)}}, DefaultWebhookIDs: ids(two, two)},
			[]string{"routes[0].webhookIds unique", "defaultWebhookIds unique"},
		},
		"an escalation": {policy: routing.Policy{
			Routes:            []routing.Route{{Name: "a", Escalation: []alerts.EscalationStep{step(5, one), step(6, one, two)}}},
			DefaultEscalation: []alerts.EscalationStep{{AfterMinutes: 10080, Teams: []string{"sre"}}},
		}},
		"steps": {
			routing.Policy{
				Routes:            []routing.Route{{Name: "a", Escalation: []alerts.EscalationStep{step(5, one), step(5, one), step(7), step(0, one)}}},
				DefaultEscalation: []alerts.EscalationStep{step(10081, one), {AfterMinutes: 20000, Teams: []string{"a", "a"}}},
			},
			[]string{
				"routes[0].escalation[1].afterMinutes out_of_range", "routes[0].escalation[2].webhookIds required", "routes[0].escalation[3].afterMinutes out_of_range",
				"routes[0].escalation[3].afterMinutes out_of_range", "defaultEscalation[0].afterMinutes out_of_range", "defaultEscalation[1].afterMinutes out_of_range",
				"defaultEscalation[1].teams unique",
			},
		},
		"too many webhooks": {routing.Policy{Routes: split(many)}, []string{"routes out_of_range"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.policy.Check(rules.NewValidator())
			var got []string
			if refused, ok := errors.AsType[*fault.Error](err); ok {
				for _, f := range refused.Fields {
					got = append(got, f.Field+" "+f.Code)
				}
			}
			slices.Sort(got)
			slices.Sort(c.want)
			if diff := cmp.Diff(c.want, got); diff != "" || (err == nil) != (len(c.want) == 0) {
				t.Errorf("%v: %s", err, diff)
			}
		})
	}
}

func TestRulesThatNameAWebhookAreListed(t *testing.T) {
	t.Parallel()
	p := routing.Policy{Routes: []routing.Route{{Name: "a", WebhookIDs: ids(one)}, {Name: "b", WebhookIDs: ids(two, one)}}, DefaultWebhookIDs: ids(one)}
	if got, want := p.Naming(one), []string{`the route "a"`, `the route "b"`, "the default"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := p.Naming(three); got != nil {
		t.Errorf("%q name a webhook that they do not", got)
	}
	p.Routes[1].Escalation = []alerts.EscalationStep{step(5, three), step(6, three)}
	p.DefaultEscalation = []alerts.EscalationStep{{AfterMinutes: 5, WebhookIDs: ids(three), Teams: []string{"sre"}}}
	if got, want := p.Naming(three), []string{`the escalation of the route "b"`, "the escalation of the default"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := p.NamingTeam("sre"); !slices.Equal(got, []string{"the escalation of the default"}) || !slices.Equal(p.Teams(), []string{"sre"}) {
		t.Errorf("%q lead to the team; teams %q", got, p.Teams())
	}
	if got := p.WebhookIDs(); !slices.Equal(got, ids(one, two, three)) {
		t.Errorf("webhooks %v", got)
	}
}

// TestWhatIsStoredIsReadBack checks the JSON in which the routing of alerts is stored.
func TestWhatIsStoredIsReadBack(t *testing.T) {
	t.Parallel()
	r := compiled(t, routing.Policy{
		Routes:            []routing.Route{{Name: "a", Match: app("orders"), WebhookIDs: ids(one)}, {Name: "b", Match: app("tax"), WebhookIDs: ids(), Escalation: []alerts.EscalationStep{step(5, three)}}},
		DefaultWebhookIDs: ids(two), DefaultEscalation: []alerts.EscalationStep{{AfterMinutes: 15, Teams: []string{"sre"}}},
	})
	for application, want := range map[string]string{
		"orders":  `{"version":7,"routes":[{"name":"a","webhookIds":["01000000-0000-0000-0000-000000000000"]}]}`,
		"tax":     `{"version":7,"routes":[{"name":"b","webhookIds":null,"escalation":[{"afterMinutes":5,"webhookIds":["03000000-0000-0000-0000-000000000000"]}]}]}`,
		"billing": `{"version":7,"defaultWebhookIds":["02000000-0000-0000-0000-000000000000"],"defaultEscalation":[{"afterMinutes":15,"teams":["sre"]}]}`,
	} {
		text, err := json.Marshal(r.Route(about(application)))
		if err != nil || string(text) != want {
			t.Errorf("%s, %v; want %s", text, err, want)
		}
	}
}

func TestWhatCannotBeUsedDoesNotCompile(t *testing.T) {
	t.Parallel()
	if _, err := routing.Compile(1, routing.Policy{Routes: []routing.Route{{Name: "a", Match: match.Match{Filter: rules.Filter{ErrorMessageMatches: "("}}}}}); err == nil {
		t.Error("it compiles")
	}
}
