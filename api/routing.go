package api

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/alerts/routing"
	"tocsin/internal/fault"
)

// RoutingStore stores the routing policy of each tenant.
type RoutingStore interface {
	Get(ctx context.Context, tenant string) (RoutingRecord, error)
	// Replace writes a valid policy. A version other than the stored one is a fault of kind Stale,
	// a webhook that was deleted meanwhile one of kind Conflict.
	Replace(ctx context.Context, tenant, actor string, version int64, p routing.Policy) (RoutingRecord, error)
}

// RoutingRecord is a routing policy as people see it.
type RoutingRecord struct {
	routing.Policy

	// Version counts the edits, from 1. Version 1 is the empty policy that nobody has edited, with
	// the zero UpdatedAt.
	Version   int64
	UpdatedAt time.Time
	UpdatedBy string
	// Rules is the number of rules that use the policy.
	Rules int64
	// Problem says why the stored policy cannot be used and the rules that use it fail. It is empty
	// for a policy that can be used.
	Problem string
}

// GetRoutingPolicy answers GET /routing.
func (s *server) GetRoutingPolicy(ctx context.Context, _ GetRoutingPolicyRequestObject) (GetRoutingPolicyResponseObject, error) {
	r, err := s.Routing.Get(ctx, tenantOf(ctx))
	if err != nil {
		return nil, fmt.Errorf("get routing policy: %w", err)
	}
	return GetRoutingPolicy200JSONResponse{Body: policyAnswer(&r), Headers: GetRoutingPolicy200ResponseHeaders{ETag: etag(r.Version)}}, nil
}

// UpdateRoutingPolicy answers PUT /routing.
func (s *server) UpdateRoutingPolicy(ctx context.Context, req UpdateRoutingPolicyRequestObject) (UpdateRoutingPolicyResponseObject, error) {
	version, err := editedVersion(req.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	hooks, err := s.webhookNames(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.checkPolicy(ctx, req.Body, hooks, nil); err != nil {
		return nil, err
	}
	r, err := s.Routing.Replace(ctx, tenantOf(ctx), identityOf(ctx).Actor, version, *req.Body)
	if err != nil {
		return nil, fmt.Errorf("update routing policy: %w", err)
	}
	return UpdateRoutingPolicy200JSONResponse{Body: policyAnswer(&r), Headers: UpdateRoutingPolicy200ResponseHeaders{ETag: etag(r.Version)}}, nil
}

// checkPolicy returns what is wrong with a policy, which may name some webhooks, the teams that have a webhook, and planned ones.
func (s *server) checkPolicy(ctx context.Context, p *routing.Policy, hooks webhookNames, planned []string) error {
	var wrong []fault.Field
	if err := p.Check(s.validator); err != nil {
		if fault.KindOf(err) != fault.Invalid {
			return err
		}
		wrong = problemOf(err).Errors
	}
	exist := func(list []uuid.UUID, path string) {
		for i, id := range list {
			if _, exists := hooks.names[id]; !exists {
				wrong = append(wrong, fault.Field{Field: fmt.Sprintf("%s[%d]", path, i), Code: "not_found", Message: "This webhook does not exist; choose another one"})
			}
		}
	}
	for i := range p.Routes {
		exist(p.Routes[i].WebhookIDs, fmt.Sprintf("routes[%d].webhookIds", i))
	}
	exist(p.DefaultWebhookIDs, "defaultWebhookIds")
	p.Steps(func(field string, step *alerts.EscalationStep) { exist(step.WebhookIDs, field+".webhookIds") })
	if len(p.Teams()) > 0 {
		known, err := s.Teams.Get(ctx, tenantOf(ctx))
		if err != nil {
			return fmt.Errorf("read teams: %w", err)
		}
		names := known.List.Names()
		p.Steps(func(field string, step *alerts.EscalationStep) {
			for i, name := range step.Teams {
				at := fmt.Sprintf("%s.teams[%d]", field, i)
				switch {
				case slices.Contains(planned, name):
				case !slices.Contains(names, name):
					wrong = append(wrong, fault.Field{Field: at, Code: "not_found", Message: "This team does not exist; choose another one"})
				case len(known.List.WebhookIDs([]string{name})) == 0:
					wrong = append(wrong, fault.Field{Field: at, Code: "required", Message: "The team has no webhook, so nobody would be notified; add a webhook to the team, or choose another team"})
				}
			}
		})
	}
	return fault.InvalidFields("the routing policy", wrong)
}

func policyAnswer(r *RoutingRecord) RoutingPolicy {
	answer := RoutingPolicy{
		Version: r.Version, Routes: make([]RoutingRoute, len(r.Routes)), DefaultWebhookIds: listed(r.DefaultWebhookIDs), DefaultEscalation: r.DefaultEscalation, Rules: r.Rules,
		Problem: optional(r.Problem), UpdatedAt: instantOf(r.UpdatedAt), UpdatedBy: optional(r.UpdatedBy),
	}
	for i, route := range r.Routes {
		route.WebhookIDs = listed(route.WebhookIDs)
		answer.Routes[i] = route
	}
	return answer
}

// routingAnswer returns how an alert was routed; nil if it was not routed.
func routingAnswer(r *alerts.Routing) *AlertRouting {
	if r == nil {
		return nil
	}
	answer := AlertRouting{
		Answer: r.Answer(), PolicyVersion: r.Version, Routes: make([]RouteTaken, len(r.Routes)), DefaultWebhookIds: listed(r.DefaultWebhookIDs),
		DefaultEscalation: r.DefaultEscalation,
	}
	for i := range r.Routes {
		answer.Routes[i] = RouteTaken{Name: r.Routes[i].Name, WebhookIds: listed(r.Routes[i].WebhookIDs), Escalation: r.Routes[i].Escalation}
	}
	return &answer
}

// policyRouter returns the tenant's compiled policy.
func (s *server) policyRouter(ctx context.Context) (*routing.Router, error) {
	r, err := s.Routing.Get(ctx, tenantOf(ctx))
	if err != nil {
		return nil, fmt.Errorf("read routing policy: %w", err)
	}
	if r.Problem != "" {
		return nil, fault.New(fault.Conflict, "the routing policy cannot be used: %s; save a valid one on the page Routing", r.Problem)
	}
	router, err := routing.Compile(r.Version, r.Policy)
	if err != nil {
		return nil, fmt.Errorf("read routing policy: %w", err)
	}
	return router, nil
}
