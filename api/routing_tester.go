package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/alerts/match"
	"tocsin/alerts/routing"
	"tocsin/alerts/silences"
	"tocsin/cursor"
	"tocsin/internal/fault"
	"tocsin/rules"
)

// routed is the subject of a routing test: an existing or imagined alert, and its rule.
type routed struct {
	alert alerts.Instance
	rule  rules.Definition
	// own says that the rule names webhooks itself.
	own bool
}

// TestRouting answers POST /routing/test.
func (s *server) TestRouting(ctx context.Context, req TestRoutingRequestObject) (TestRoutingResponseObject, error) {
	about, err := s.routed(ctx, req.Body)
	if err != nil {
		return nil, err
	}
	answer := RoutingTestAnswer{Answer: alerts.NotRouted, Routes: []RoutingTestRoute{}, Webhooks: []RoutingTestWebhook{}}
	if req.Body.AlertID != nil {
		answer.Stored = routingAnswer(about.alert.Routing)
	}
	hooks, err := s.webhookNames(ctx)
	if err != nil {
		return nil, err
	}
	now, err := s.Clock(ctx)
	if err != nil {
		return nil, fmt.Errorf("test routing: %w", err)
	}
	planned := deref(req.Body.Planned)
	for _, w := range deref(planned.Webhooks) {
		if _, stored := hooks.names[w.ID]; !stored {
			hooks.names[w.ID], hooks.enabled[w.ID] = w.Name, true
		}
	}
	add := func(ids []uuid.UUID, route ...string) {
		for _, id := range ids {
			at := slices.IndexFunc(answer.Webhooks, func(w RoutingTestWebhook) bool { return w.ID == id })
			if at < 0 {
				at = len(answer.Webhooks)
				hook := RoutingTestWebhook{ID: id, Name: cmp.Or(hooks.names[id], id.String()), Enabled: hooks.enabled[id], Routes: []string{}}
				if until := hooks.quiet[id].Until(now); until.After(now) && about.alert.Severity != rules.Critical {
					hook.QuietUntil = utc(&until)
				}
				answer.Webhooks = append(answer.Webhooks, hook)
			}
			answer.Webhooks[at].Routes = append(answer.Webhooks[at].Routes, route...)
		}
	}
	subject := match.SubjectOf(&about.rule, &about.alert)
	if about.own {
		add(about.rule.WebhookIDs)
	} else {
		router, err := s.routerOf(ctx, req.Body.Policy, hooks, deref(planned.Teams))
		if err != nil {
			return nil, err
		}
		decided := router.Route(&subject)
		answer.Answer = decided.Answer()
		if req.Body.Policy == nil {
			answer.PolicyVersion = &decided.Version
		}
		for _, step := range router.Explain(&subject) {
			answer.Routes = append(answer.Routes, RoutingTestRoute{Name: step.Name, Verdict: step.Verdict, Unmet: listed(step.Unmet)})
		}
		for _, taken := range decided.Routes {
			add(taken.WebhookIDs, taken.Name)
		}
		add(decided.DefaultWebhookIDs)
		answer.Escalation = decided.Escalation()
	}
	answer.SuppressedBy, err = s.suppressing(ctx, &subject, now)
	return TestRouting200JSONResponse(answer), err
}

// routerOf returns the policy in the request, or the stored one.
func (s *server) routerOf(ctx context.Context, draft *routing.Policy, hooks webhookNames, planned []string) (*routing.Router, error) {
	if draft == nil {
		return s.policyRouter(ctx)
	}
	if err := s.checkPolicy(ctx, draft, hooks, planned); err != nil {
		return nil, inside("policy.", err)
	}
	router, err := routing.Compile(1, *draft)
	if err != nil {
		return nil, fmt.Errorf("test routing: %w", err)
	}
	return router, nil
}

// suppressing returns the silence that is in force at an instant and applies to an alert; nil if none does.
func (s *server) suppressing(ctx context.Context, subject *match.Subject, at time.Time) (*SuppressedBy, error) {
	open, err := s.Silences.Open(ctx, tenantOf(ctx))
	if err != nil {
		return nil, fmt.Errorf("test routing: %w", err)
	}
	var inForce []*silences.Compiled
	for i := range open {
		if c, err := silences.Compile(&open[i].Silence); err == nil {
			inForce = append(inForce, c)
		}
	}
	by := silences.Suppressing(silences.InForce(inForce, at), subject)
	if by == nil {
		return nil, nil //nolint:nilnil // none is
	}
	return &SuppressedBy{ID: by.ID, Name: by.Name, Reason: by.Reason, CreatedBy: by.CreatedBy, EndsAt: utc(by.Over())}, nil
}

// routed returns the subject of a request.
func (s *server) routed(ctx context.Context, b *RoutingTestRequest) (about routed, err error) {
	given := 0
	for _, is := range []bool{b.AlertID != nil, b.RuleID != nil, b.Rule != nil, b.Severity != nil || len(b.Labels) > 0} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return about, invalidField("alertId", "not_applicable", "Must be exactly one of these: an alert, a rule, or a severity and labels")
	case b.AlertID != nil && b.Exchange != nil:
		return about, invalidField("exchange", "not_applicable", "The exchange of the alert is used; leave this one out")
	case b.AlertID != nil:
		return s.routedAlert(ctx, *b.AlertID)
	}
	r := rules.Rule{Definition: rules.Definition{FireMode: rules.PerExchange, Severity: rules.Critical, Labels: b.Labels, UseRoutingPolicy: true}}
	switch {
	case b.RuleID != nil:
		if r, err = s.Rules.Get(ctx, tenantOf(ctx), *b.RuleID); err != nil {
			return about, fmt.Errorf("test routing: %w", err)
		}
	case b.Rule != nil:
		if r.Definition, _, err = s.checkedDefinition(ctx, b.Rule); err != nil {
			return about, inside("rule.", err)
		}
	case b.Severity != nil:
		if r.Severity, err = severityOf(*b.Severity); err != nil {
			return about, err
		}
	}
	e, err := thoughtOf(b.Exchange)
	if err != nil {
		return about, err
	}
	e.TenantID = tenantOf(ctx)
	about = routed{rule: r.Definition, own: !r.UseRoutingPolicy, alert: alerts.Instance{RuleID: r.ID, TenantID: e.TenantID, Severity: r.Severity, Exchange: e.Clean()}}
	if r.FireMode != rules.PerExchange {
		about.alert.Count = new(alerts.CountOf(&r.Definition))
		about.alert.Count.Group = cursor.Key(r.Grouping().Of(&about.alert.Exchange))
	}
	return about, nil
}

func severityOf(severity rules.Severity) (rules.Severity, error) {
	_, err := oneOf("severity", &[]rules.Severity{severity}, rules.Critical, rules.Warning, rules.Info)
	return severity, err
}

// thoughtOf returns an imagined exchange.
func thoughtOf(b *RoutingTestExchange) (rules.Exchange, error) {
	e := rules.Exchange{ExecutionID: "test", Status: rules.Failed, Attributes: map[string]string{}}
	if b == nil {
		return e, nil
	}
	if b.Status != "" {
		if _, err := oneOf("exchange.status", &[]rules.Status{b.Status}, rules.Completed, rules.Failed); err != nil {
			return e, err
		}
		e.Status = b.Status
	}
	if err := within("exchange.durationMs", b.DurationMS, 9_000_000_000_000); err != nil {
		return e, err
	}
	e.Environment, e.Application, e.Route = b.Environment, b.Application, b.Route
	e.ErrorType, e.ErrorMessage, e.DurationNS = b.ErrorType, b.ErrorMessage, b.DurationMS*1_000_000
	if b.Attributes != nil {
		e.Attributes = b.Attributes
	}
	return e, nil
}

// routedAlert returns a stored alert, with the present definition of its rule. If the rule is gone
// or cannot be read, the labels are those of the alert.
func (s *server) routedAlert(ctx context.Context, id uuid.UUID) (about routed, err error) {
	if about.alert, err = s.Inbox.Get(ctx, tenantOf(ctx), id); err != nil {
		return about, fmt.Errorf("test routing: %w", err)
	}
	if about.alert.Health {
		return about, fault.New(fault.Conflict, "the alert is about Tocsin itself, so it goes to the webhooks of operators, whatever the routing policy says; test with another alert")
	}
	r, err := s.Rules.Get(ctx, tenantOf(ctx), about.alert.RuleID)
	if err != nil && fault.KindOf(err) != fault.NotFound && fault.KindOf(err) != fault.Conflict {
		return about, fmt.Errorf("test routing: %w", err)
	}
	if err != nil {
		r.Definition = rules.Definition{UseRoutingPolicy: about.alert.Routing != nil}
		r.SetAbout(about.alert.About)
	}
	about.rule, about.own = r.Definition, !r.UseRoutingPolicy
	return about, nil
}
