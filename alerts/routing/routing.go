// Package routing decides who is notified of an alert, for rules that leave this to their tenant's
// routing policy instead of naming webhooks themselves.
//
// A policy is a list of routes. An alert goes through it from the top. It takes each route that
// matches it, and stops at the first of these that does not say to continue. An alert that takes no
// route goes to the default. Each webhook gets one message, however many routes name it. So every
// alert has one answer, which is stored with it ([alerts.Routing]): the routes that it took, the
// default, or neither.
//
// The answer depends only on the alert, its rule and the policy. It is determined when the alert
// fires, by the policy of that moment, and does not change: an edit of the policy moves no message.
// An alert that takes a route also takes its escalation: who is notified if nobody has acknowledged
// the alert some minutes after it fired. A condition that cannot be decided does not match, as in
// package match.
package routing

import (
	"fmt"
	"slices"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/alerts/match"
	"tocsin/internal/fault"
	"tocsin/rules"
)

// Policy is what a person writes. The JSON names are those of the API; validation reports
// fields by them.
type Policy struct {
	Routes            []Route     `json:"routes" validate:"max=100,dive"`
	DefaultWebhookIDs []uuid.UUID `json:"defaultWebhookIds" validate:"max=20,unique"`
	// DefaultEscalation is the escalation of alerts that take no route.
	DefaultEscalation []alerts.EscalationStep `json:"defaultEscalation,omitempty" validate:"max=10,dive"`
}

// Route leads alerts to webhooks. Its name is unique within the policy.
type Route struct {
	Name string `json:"name" validate:"required,max=200,text"`
	// Match says which alerts take the route; an empty match takes all.
	Match match.Match `json:"match"`
	// WebhookIDs may be empty: then this route notifies nobody.
	WebhookIDs []uuid.UUID `json:"webhookIds" validate:"max=20,unique"`
	// Escalation are the steps that follow while nobody acknowledges the alert, by ascending minutes.
	Escalation []alerts.EscalationStep `json:"escalation,omitempty" validate:"max=10,dive"`
	// Continue lets an alert that took the route also go through the next ones.
	Continue bool `json:"continue"`
}

// WebhookIDs returns every webhook that the policy names, each once.
func (p *Policy) WebhookIDs() []uuid.UUID {
	all := alerts.Routing{DefaultWebhookIDs: p.DefaultWebhookIDs}
	for i := range p.Routes {
		all.Routes = append(all.Routes, alerts.RouteTaken{WebhookIDs: p.Routes[i].WebhookIDs})
	}
	for _, e := range p.escalations() {
		for i := range e.steps {
			all.Routes = append(all.Routes, alerts.RouteTaken{WebhookIDs: e.steps[i].WebhookIDs})
		}
	}
	return all.WebhookIDs()
}

// Teams returns the names of the teams that the policy names.
func (p *Policy) Teams() []string {
	var names []string
	for _, e := range p.escalations() {
		for i := range e.steps {
			names = append(names, e.steps[i].Teams...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// escalation is the steps of a route or of the default, their name in texts, and the field that
// holds them.
type escalation struct {
	of, field string
	steps     []alerts.EscalationStep
}

func (p *Policy) escalations() []escalation {
	list := make([]escalation, 0, len(p.Routes)+1)
	for i := range p.Routes {
		list = append(list, escalation{fmt.Sprintf("the route %q", p.Routes[i].Name), fmt.Sprintf("routes[%d].escalation", i), p.Routes[i].Escalation})
	}
	return append(list, escalation{"the default", "defaultEscalation", p.DefaultEscalation})
}

// Steps calls f with each step of the policy and the path of its field.
func (p *Policy) Steps(f func(field string, step *alerts.EscalationStep)) {
	for _, e := range p.escalations() {
		for i := range e.steps {
			f(fmt.Sprintf("%s[%d]", e.field, i), &e.steps[i])
		}
	}
}

// Naming returns the names of the routes that lead to a webhook, directly or by their escalation;
// they may include "the default".
func (p *Policy) Naming(webhook uuid.UUID) []string {
	names := p.escalating(func(s *alerts.EscalationStep) bool { return slices.Contains(s.WebhookIDs, webhook) })
	for i := range p.Routes {
		for _, id := range p.Routes[i].WebhookIDs {
			if id == webhook {
				names = append(names, fmt.Sprintf("the route %q", p.Routes[i].Name))
			}
		}
	}
	for _, id := range p.DefaultWebhookIDs {
		if id == webhook {
			names = append(names, "the default")
		}
	}
	return names
}

// NamingTeam returns what escalates to a team, like [Policy.Naming].
func (p *Policy) NamingTeam(team string) []string {
	return p.escalating(func(s *alerts.EscalationStep) bool { return slices.Contains(s.Teams, team) })
}

func (p *Policy) escalating(to func(*alerts.EscalationStep) bool) []string {
	var names []string
	for _, e := range p.escalations() {
		for i := range e.steps {
			if to(&e.steps[i]) {
				names = append(names, "the escalation of "+e.of)
				break
			}
		}
	}
	return names
}

// MaxWebhooks is how many webhooks a policy may name, which bounds the messages about one alert.
const MaxWebhooks = 100

// Check returns an invalid-input fault with one entry for each field that cannot be accepted,
// or nil.
func (p *Policy) Check(v *rules.Validator) error {
	fields, err := v.Faults(p)
	if err != nil {
		return fmt.Errorf("validate routing policy: %w", err)
	}
	sound := len(fields) == 0
	add := func(field, code, message string) {
		fields = append(fields, fault.Field{Field: field, Code: code, Message: message})
	}
	if len(p.WebhookIDs()) > MaxWebhooks {
		add("routes", "out_of_range", fmt.Sprintf("Must name at most %d webhooks in all", MaxWebhooks))
	}
	for _, e := range p.escalations() {
		for i := range e.steps {
			s, at := &e.steps[i], fmt.Sprintf("%s[%d].", e.field, i)
			if i > 0 && s.AfterMinutes <= e.steps[i-1].AfterMinutes {
				add(at+"afterMinutes", "out_of_range", "Must be more than the minutes of the previous step")
			}
			if len(s.WebhookIDs)+len(s.Teams) == 0 {
				add(at+"webhookIds", "required", "Must name at least one webhook or team")
			}
		}
	}
	named, all := map[string]bool{}, ""
	for i := range p.Routes {
		r := &p.Routes[i]
		at := fmt.Sprintf("routes[%d].", i)
		if named[r.Name] && r.Name != "" {
			add(at+"name", "unique", "Another route has the same name; choose another one")
		}
		named[r.Name] = true
		if all != "" {
			add(at+"match", "unreachable", fmt.Sprintf("No alert reaches this route, because %[1]q matches all of them and does not continue; move this route above it, or let %[1]q continue", all))
		}
		if r.Match.Empty() && !r.Continue && all == "" {
			all = r.Name
		}
		if _, err := match.Compile(r.Match); err != nil && sound {
			add(at+"match", "match", err.Error())
		}
	}
	return fault.InvalidFields("the routing policy", fields)
}

// Router is a policy that is ready to decide. It is safe for concurrent use.
type Router struct {
	version  int64
	policy   Policy
	matchers []*match.Matcher
}

// Compile prepares a version of a policy. Its error names the route that is invalid: a policy
// decides as a whole or not at all.
func Compile(version int64, p Policy) (*Router, error) {
	r := &Router{version: version, policy: p}
	for i := range p.Routes {
		m, err := match.Compile(p.Routes[i].Match)
		if err != nil {
			return nil, fmt.Errorf("route %q: match: %w", p.Routes[i].Name, err)
		}
		r.matchers = append(r.matchers, m)
	}
	return r, nil
}

// Recipients returns the webhooks that are notified of an alert which a rule raises. Where the
// rule leaves that to the routing policy, the router decides, and the alert notes how. It
// decides by the policy that the rules revision of the commit holds: a change of the policy is
// a change of the rules that use it, and a commit by the former one is stale.
func Recipients(r *rules.Rule, router *Router, a *alerts.Instance) []uuid.UUID {
	if router == nil {
		return r.WebhookIDs
	}
	subject := match.SubjectOf(&r.Definition, a)
	a.Routing = router.Route(&subject)
	return a.Routing.WebhookIDs()
}

// Route decides who is notified of an alert.
func (r *Router) Route(s *match.Subject) *alerts.Routing {
	out := &alerts.Routing{Version: r.version}
	for i, m := range r.matchers {
		if !m.Matches(s) {
			continue
		}
		route := &r.policy.Routes[i]
		out.Routes = append(out.Routes, alerts.RouteTaken{Name: route.Name, WebhookIDs: route.WebhookIDs, Escalation: route.Escalation})
		if !route.Continue {
			return out
		}
	}
	if len(out.Routes) == 0 {
		out.DefaultWebhookIDs, out.DefaultEscalation = r.policy.DefaultWebhookIDs, r.policy.DefaultEscalation
	}
	return out
}

// Verdict is the result at a route.
type Verdict string

// The verdicts.
const (
	Taken      Verdict = "TAKEN"
	NotMatched Verdict = "NOT_MATCHED"
	// NotReached means that the route comes after one that was taken and does not continue.
	NotReached Verdict = "NOT_REACHED"
)

// Step says why an alert takes a route or does not.
type Step struct {
	Name    string
	Verdict Verdict
	// Unmet are the conditions of a route that does not match, by their paths in its match.
	Unmet []string
}

// Explain returns the result at each route for an alert, in the order of the routes.
func (r *Router) Explain(s *match.Subject) []Step {
	steps := make([]Step, len(r.matchers))
	ended := false
	for i, m := range r.matchers {
		route := &r.policy.Routes[i]
		steps[i].Name = route.Name
		switch {
		case ended:
			steps[i].Verdict = NotReached
		case m.Matches(s):
			steps[i].Verdict, ended = Taken, !route.Continue
		default:
			steps[i].Verdict, steps[i].Unmet = NotMatched, m.Unmet(s)
		}
	}
	return steps
}
