package alerts

import (
	"slices"

	"github.com/google/uuid"
)

// Routing is how a tenant's routing policy decided who is notified of an alert. It is stored with
// the alert, and later messages (reminders, the end) are routed in the same way.
type Routing struct {
	// Version is the version of the policy.
	Version int64 `json:"version"`
	// Routes are the routes of the policy that the alert took, in order.
	Routes []RouteTaken `json:"routes,omitempty"`
	// DefaultWebhookIDs are the webhooks of the policy's default if the alert took no route.
	// DefaultEscalation is its escalation in that case.
	DefaultWebhookIDs []uuid.UUID      `json:"defaultWebhookIds,omitempty"`
	DefaultEscalation []EscalationStep `json:"defaultEscalation,omitempty"`
}

// RouteTaken is a route of the policy as it was when an alert took it.
type RouteTaken struct {
	Name       string           `json:"name"`
	WebhookIDs []uuid.UUID      `json:"webhookIds"`
	Escalation []EscalationStep `json:"escalation,omitempty"`
}

// EscalationStep says who is notified of an alert that nobody has acknowledged some minutes after
// it fired.
type EscalationStep struct {
	AfterMinutes int         `json:"afterMinutes" validate:"min=1,max=10080"`
	WebhookIDs   []uuid.UUID `json:"webhookIds,omitempty" validate:"max=20,unique"`
	// Teams are notified through the webhooks that they have when the step is taken.
	Teams []string `json:"teams,omitempty" validate:"max=20,unique,dive,required,max=200,text"`
}

// RoutingAnswer says where an alert was routed.
type RoutingAnswer string

// The answers.
const (
	// Routed means that the alert took at least one route. A route without webhooks notifies
	// nobody.
	Routed RoutingAnswer = "ROUTED"
	// RoutedByDefault means that it took no route and went to the default.
	RoutedByDefault RoutingAnswer = "DEFAULT"
	// NoRoute means that it took no route and the policy has no default: nobody is notified.
	NoRoute RoutingAnswer = "NO_ROUTE"
	// NotRouted means that no policy was used: the alert went to the webhooks that its rule names.
	NotRouted RoutingAnswer = "WEBHOOKS"
)

// Answer returns where the alert was routed.
func (r *Routing) Answer() RoutingAnswer {
	switch {
	case len(r.Routes) > 0:
		return Routed
	case len(r.DefaultWebhookIDs)+len(r.DefaultEscalation) > 0:
		return RoutedByDefault
	}
	return NoRoute
}

// WebhookIDs returns the webhooks that are notified when the alert fires, each once.
func (r *Routing) WebhookIDs() []uuid.UUID {
	var list []uuid.UUID
	for i := range r.Routes {
		list = union(list, r.Routes[i].WebhookIDs)
	}
	return union(list, r.DefaultWebhookIDs)
}

// Escalation returns the escalation steps of all routes that the alert took, or of the default, in
// order: one step for each number of minutes.
func (r *Routing) Escalation() []EscalationStep {
	all := slices.Clone(r.DefaultEscalation)
	for i := range r.Routes {
		all = append(all, r.Routes[i].Escalation...)
	}
	slices.SortStableFunc(all, func(a, b EscalationStep) int { return a.AfterMinutes - b.AfterMinutes })
	var steps []EscalationStep
	for _, s := range all {
		if len(steps) == 0 || steps[len(steps)-1].AfterMinutes != s.AfterMinutes {
			steps = append(steps, EscalationStep{AfterMinutes: s.AfterMinutes})
		}
		last := &steps[len(steps)-1]
		last.WebhookIDs = union(last.WebhookIDs, s.WebhookIDs)
		last.Teams = union(last.Teams, s.Teams)
	}
	return steps
}

// WithoutEscalation returns the routing without escalation steps, for an alert that fired before it was routed.
func (r *Routing) WithoutEscalation() *Routing {
	without := &Routing{Version: r.Version, Routes: slices.Clone(r.Routes), DefaultWebhookIDs: r.DefaultWebhookIDs}
	for i := range without.Routes {
		without.Routes[i].Escalation = nil
	}
	return without
}

// Escalates reports whether the alert has escalation steps. It is false for a nil routing.
func (r *Routing) Escalates() bool {
	return r != nil && (len(r.DefaultEscalation) > 0 || slices.ContainsFunc(r.Routes, func(t RouteTaken) bool { return len(t.Escalation) > 0 }))
}

// union returns a list with the elements of another list that it does not contain.
func union[T comparable](list, more []T) []T {
	for _, one := range more {
		if !slices.Contains(list, one) {
			list = append(list, one)
		}
	}
	return list
}

// Escalates reports whether an alert in this state is escalated: nobody looks after it.
func (s State) Escalates() bool { return s == Firing }
