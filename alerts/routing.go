package alerts

import (
	"slices"

	"github.com/google/uuid"
)

// Routing is how a tenant's routing policy decided who is notified of an alert. It is stored
// with the alert, and whatever follows (reminders, the end) goes the same way.
type Routing struct {
	// Version is that of the policy.
	Version int64 `json:"version"`
	// Routes are those of the policy that the alert took, in their order.
	Routes []RouteTaken `json:"routes,omitempty"`
	// DefaultWebhookIDs are those of the policy's default, where the alert took no route.
	DefaultWebhookIDs []uuid.UUID `json:"defaultWebhookIds,omitempty"`
}

// RouteTaken is a route of the policy as it was when an alert took it.
type RouteTaken struct {
	Name       string      `json:"name"`
	WebhookIDs []uuid.UUID `json:"webhookIds"`
}

// RoutingAnswer says in a word where an alert went.
type RoutingAnswer string

// The answers.
const (
	// Routed took at least one route; a route without webhooks notifies nobody.
	Routed RoutingAnswer = "ROUTED"
	// RoutedByDefault took none, and went to the default.
	RoutedByDefault RoutingAnswer = "DEFAULT"
	// NoRoute took none, and the policy has no default: nobody is notified.
	NoRoute RoutingAnswer = "NO_ROUTE"
	// NotRouted goes to the webhooks that its rule names. It is the answer of no policy.
	NotRouted RoutingAnswer = "WEBHOOKS"
)

// Answer returns where the alert went.
func (r *Routing) Answer() RoutingAnswer {
	switch {
	case len(r.Routes) > 0:
		return Routed
	case len(r.DefaultWebhookIDs) > 0:
		return RoutedByDefault
	}
	return NoRoute
}

// WebhookIDs returns the webhooks that are notified, each once.
func (r *Routing) WebhookIDs() []uuid.UUID {
	var list []uuid.UUID
	add := func(ids []uuid.UUID) {
		for _, id := range ids {
			if !slices.Contains(list, id) {
				list = append(list, id)
			}
		}
	}
	for i := range r.Routes {
		add(r.Routes[i].WebhookIDs)
	}
	add(r.DefaultWebhookIDs)
	return list
}
