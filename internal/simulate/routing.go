package simulate

import (
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/alerts/match"
	"tocsin/alerts/routing"
	"tocsin/internal/simulate/model"
	"tocsin/notify"
	"tocsin/rules"
)

// policyTruth is a version of a tenant's routing policy.
type policyTruth struct {
	version  int64
	routes   []routeTruth
	defaults []uuid.UUID
	// steps are those of the default route.
	steps []stepTruth
}

// routeTruth is a route: an alert takes it if it is about one of the applications, or about any if
// there are none. A barred route only matches a severity that no alert has.
type routeTruth struct {
	applications   []string
	barred, passes bool
	webhooks       []uuid.UUID
	steps          []stepTruth
}

// editPolicy lets a user edit a routing policy.
func (w *world) editPolicy() {
	tenant := w.tenant()
	var own []uuid.UUID
	for _, hook := range w.people.webhooks {
		if h := w.db.Webhook(hook); h.TenantID == tenant && !h.Operators {
			own = append(own, hook)
		}
	}
	some := func() []uuid.UUID {
		return slices.DeleteFunc(slices.Clone(own), func(uuid.UUID) bool { return w.rand.IntN(3) == 0 })
	}
	was := w.db.RoutingPolicy(tenant).Version
	known := policyTruth{version: was + 1}
	var p routing.Policy
	for n := range w.rand.IntN(4) {
		scope := w.scope()
		r := routing.Route{Name: string(rune('a' + n)), Match: match.Match{Scope: scope}, WebhookIDs: some(), Continue: w.rand.IntN(2) == 0}
		barred := w.rand.IntN(5) == 0
		if barred {
			r.Match.Severities = []rules.Severity{rules.Info}
		}
		var steps []stepTruth
		r.Escalation, steps = w.someSteps(own)
		p.Routes = append(p.Routes, r)
		known.routes = append(known.routes, routeTruth{scope.Applications, barred, r.Continue, r.WebhookIDs, steps})
	}
	if w.rand.IntN(2) == 0 {
		p.DefaultWebhookIDs = some()
		p.DefaultEscalation, known.steps = w.someSteps(own)
	}
	known.defaults = p.DefaultWebhookIDs
	if w.db.ReplacePolicy(tenant, was, p) != nil {
		return
	}
	w.truth.policies[tenant] = append(w.truth.policies[tenant], known)
	w.note("a person writes version %d of the routing policy of %s, with %d routes", known.version, tenant, len(p.Routes))
}

// routedTo returns the webhooks that have to be notified of an alert of a rule: if the rule uses
// the policy, those of the policy that was in force when the alert fired.
func (w *world) routedTo(a *model.Alert, known *alertTruth, d *rules.Definition, fires bool) []uuid.UUID {
	if a.Routing == nil {
		known.routed, known.steps, known.stepOf = nil, nil, nil
		if d.UseRoutingPolicy && fires {
			w.violate("P2", "alert %s is stored without an answer of the routing policy", short(a.ID))
		}
		return d.WebhookIDs
	}
	if known.routed == nil {
		w.stats.Routed++
		p := policyTruth{version: 1}
		if list := w.truth.policies[a.TenantID]; len(list) > 0 {
			p = list[len(list)-1]
		}
		if a.Routing.Version != p.version {
			w.violate("P2", "alert %s is routed by version %d of the policy, and version %d is in force", short(a.ID), a.Routing.Version, p.version)
		}
		to, steps := w.route(&p, a, d)
		if slices.Contains(known.due, notify.ReasonReminder) && !slices.Contains(known.due, notify.ReasonFired) {
			steps = nil // it fired before anybody routed it
		}
		known.routed, known.steps, known.stepOf = append([]uuid.UUID{}, to...), merged(steps), nil
	}
	return known.routed
}

// route is the checker's own decision.
func (w *world) route(p *policyTruth, a *model.Alert, d *rules.Definition) (to []uuid.UUID, steps []stepTruth) {
	taken := false
	for _, r := range p.routes {
		if r.barred || !w.about(a, d, r.applications) {
			continue
		}
		to, steps, taken = append(to, r.webhooks...), append(steps, r.steps...), true
		if !r.passes {
			break
		}
	}
	if !taken {
		to, steps = append(to, p.defaults...), append(steps, p.steps...)
	}
	slices.SortFunc(to, func(x, y uuid.UUID) int { return slices.Compare(x[:], y[:]) })
	return slices.Compact(to), steps
}

// someSteps draws how a route escalates: the product's steps, and the checker's record of them.
func (w *world) someSteps(own []uuid.UUID) (steps []alerts.EscalationStep, known []stepTruth) {
	for _, minutes := range []int{1, 2, 3, 5, 10} {
		if w.rand.IntN(3) > 0 {
			continue
		}
		n := w.rand.IntN(len(own) + 1)
		to := slices.Clone(own)
		if n < len(own) {
			to = []uuid.UUID{own[n]}
		}
		steps = append(steps, alerts.EscalationStep{AfterMinutes: minutes, WebhookIDs: to})
		known = append(known, stepTruth{minutes: minutes, webhooks: to})
	}
	return steps, known
}

// merged returns the steps of all routes that an alert took, in order of time.
func merged(steps []stepTruth) (list []stepTruth) {
	byMinutes := map[int][]uuid.UUID{}
	for _, s := range steps {
		byMinutes[s.minutes] = append(byMinutes[s.minutes], s.webhooks...)
	}
	for _, n := range slices.Sorted(maps.Keys(byMinutes)) {
		to := byMinutes[n]
		slices.SortFunc(to, func(x, y uuid.UUID) int { return slices.Compare(x[:], y[:]) })
		list = append(list, stepTruth{minutes: n, webhooks: slices.Compact(to)})
	}
	return list
}

// about reports whether everything that an alert represents belongs to the given applications.
func (w *world) about(a *model.Alert, d *rules.Definition, applications []string) bool {
	in := func(app string) bool {
		return matches(&rules.Definition{Scope: rules.Scope{Applications: applications}}, &exchange{app: app, status: rules.Failed})
	}
	switch {
	case !a.Window:
		e := w.truth.byKey[exchangeKey{a.TenantID, a.Key}]
		return e != nil && in(e.app)
	case len(applications) == 0:
		return true
	case d.GroupBy == rules.GroupByApplication:
		return in(a.Group)
	}
	return len(d.Scope.Applications) > 0 && !slices.ContainsFunc(d.Scope.Applications, func(name string) bool { return strings.Contains(name, "*") || !in(name) })
}
