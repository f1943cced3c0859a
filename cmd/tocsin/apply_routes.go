package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"

	api "tocsin/client"
	"tocsin/internal/rulefile"
)

// routeEntry is a route of the routing policy in a file: rules and webhooks by name. The last entry
// may be the default.
type routeEntry struct {
	Name       string       `json:"name,omitempty"`
	Match      silenceMatch `json:"match,omitzero"`
	Webhooks   []string     `json:"webhooks,omitempty"`
	Escalation []stepEntry  `json:"escalation,omitempty"`
	Continue   bool         `json:"continue,omitempty"`
	Default    bool         `json:"default,omitempty"`
}

// stepEntry is a step of an escalation in a file: webhooks by name.
type stepEntry struct {
	AfterMinutes int      `json:"afterMinutes"`
	Webhooks     []string `json:"webhooks,omitempty"`
	Teams        []string `json:"teams,omitempty"`
}

// stepEntries returns the steps of a stored escalation in the form of a file.
func stepEntries(steps []api.EscalationStep, webhooks names) []stepEntry {
	var list []stepEntry
	for _, s := range steps {
		list = append(list, stepEntry{AfterMinutes: s.AfterMinutes, Webhooks: webhooks.namesOf(s.WebhookIds), Teams: given(s.Teams)})
	}
	return list
}

// stepDefinitions returns steps in the form of the API.
func stepDefinitions(list []stepEntry, webhooks names) (*[]api.EscalationStep, error) {
	steps := make([]api.EscalationStep, len(list))
	for i := range list {
		ids, err := webhooks.idsOf("webhook", list[i].Webhooks)
		if err != nil {
			return nil, err
		}
		steps[i] = api.EscalationStep{AfterMinutes: list[i].AfterMinutes, WebhookIds: ids}
		if len(list[i].Teams) > 0 {
			steps[i].Teams = &list[i].Teams
		}
	}
	return &steps, nil
}

// webhookIDs returns the ids of webhooks by name, and the names by id.
func webhookIDs(ctx context.Context, server *api.ClientWithResponses) (names, error) {
	list, err := webhooksOf(ctx, server)
	known := names{ids: map[string]uuid.UUID{}, names: map[uuid.UUID]string{}}
	for i := range list {
		known.ids[list[i].Name], known.names[list[i].ID] = list[i].ID, list[i].Name
	}
	return known, err
}

// policyNames returns the names that a routing policy may contain.
func policyNames(ctx context.Context, server *api.ClientWithResponses) (rules, webhooks names, err error) {
	if rules, err = ruleNames(ctx, server); err != nil {
		return rules, webhooks, err
	}
	webhooks, err = webhookIDs(ctx, server)
	return rules, webhooks, err
}

// idsOf returns the ids for some names.
func (n *names) idsOf(kind string, list []string) (*[]uuid.UUID, error) {
	ids := make([]uuid.UUID, len(list))
	for i, name := range list {
		id, there := n.id(name)
		if !there {
			return nil, fmt.Errorf("there is no %[1]s named %[2]q; correct the name, or add the %[1]s to the files", kind, name)
		}
		ids[i] = id
	}
	return &ids, nil
}

// namesOf returns the names for some ids. If an id has no name any more, it returns the id.
func (n *names) namesOf(ids *[]uuid.UUID) []string {
	var list []string
	if ids == nil {
		return nil
	}
	for _, id := range *ids {
		name, there := n.names[id]
		if !there {
			name = id.String()
		}
		list = append(list, name)
	}
	return list
}

// routeEntries returns a stored policy in the form of a file.
func routeEntries(p *api.RoutingPolicy, rules, webhooks names) []routeEntry {
	list := []routeEntry{}
	for i := range p.Routes {
		r := &p.Routes[i]
		e := routeEntry{Name: r.Name, Webhooks: webhooks.namesOf(r.WebhookIds), Continue: r.Continue != nil && *r.Continue}
		if r.Escalation != nil {
			e.Escalation = stepEntries(*r.Escalation, webhooks)
		}
		if m := r.Match; m != nil {
			e.Match = silenceMatch{Rules: rules.namesOf(m.Rules), Labels: m.Labels, Severities: m.Severities, Scope: m.Scope, Filter: m.Filter}
		}
		list = append(list, e)
	}
	if len(p.DefaultWebhookIds)+len(p.DefaultEscalation) > 0 {
		list = append(list, routeEntry{Default: true, Webhooks: webhooks.namesOf(&p.DefaultWebhookIds), Escalation: stepEntries(p.DefaultEscalation, webhooks)})
	}
	return list
}

// policyDefinition returns a policy in the form of the API.
func policyDefinition(list []routeEntry, rules, webhooks names) (api.RoutingPolicyDefinition, error) {
	d := api.RoutingPolicyDefinition{Routes: &[]api.RoutingRoute{}}
	for i := range list {
		e := &list[i]
		ids, err := webhooks.idsOf("webhook", e.Webhooks)
		if err != nil {
			return d, err
		}
		steps, err := stepDefinitions(e.Escalation, webhooks)
		if err != nil {
			return d, err
		}
		if e.Default {
			d.DefaultWebhookIds, d.DefaultEscalation = ids, steps
			continue
		}
		m := &e.Match
		r := api.RoutingRoute{
			Name: e.Name, WebhookIds: ids, Escalation: steps, Continue: &e.Continue,
			Match: &api.AlertMatch{Labels: m.Labels, Severities: m.Severities, Scope: m.Scope, Filter: m.Filter},
		}
		if len(m.Rules) > 0 {
			if r.Match.Rules, err = rules.idsOf("rule", m.Rules); err != nil {
				return d, err
			}
		}
		*d.Routes = append(*d.Routes, r)
	}
	return d, nil
}

// storedPolicy returns the server's routing policy.
func storedPolicy(ctx context.Context, server *api.ClientWithResponses) (*api.RoutingPolicy, error) {
	answer, err := server.GetRoutingPolicyWithResponse(ctx)
	if err := answered(answer, err); err != nil {
		return nil, fmt.Errorf("read routing policy: %w", err)
	}
	if answer.JSON200 == nil {
		return nil, errForeign
	}
	return answer.JSON200, nil
}

// readRoutes returns the routes of the files, in their order.
func (a *applying) readRoutes() ([]routeEntry, error) {
	list := make([]routeEntry, len(a.document.Sections[rulefile.Routes]))
	for i, fields := range a.document.Sections[rulefile.Routes] {
		e := &list[i]
		if err := a.strictly(rulefile.Routes, i, fields, e); err != nil {
			return nil, err
		}
		place := fmt.Sprintf("routes[%d].", i)
		whole, err := json.Marshal(routeEntry{Default: true, Webhooks: e.Webhooks, Escalation: e.Escalation})
		if err != nil {
			return nil, fmt.Errorf("encode route: %w", err)
		}
		is, err := json.Marshal(e)
		switch {
		case err != nil:
			return nil, fmt.Errorf("encode route: %w", err)
		case e.Default && i < len(list)-1:
			return nil, a.misplaced(place+"default", "The default must be last")
		case e.Default && string(is) != string(whole):
			return nil, a.misplaced(place+"default", "The default can have only webhooks and an escalation")
		case !e.Default && e.Name == "":
			return nil, a.misplaced(place+"name", "A route needs a name")
		}
	}
	return list, nil
}

// routes plans the change of the routing policy, which the files contain as a whole. It reports
// whether the policy names rules that the files create: then it comes after them.
func (a *applying) routes(ctx context.Context) (s step, afterRules bool, err error) {
	s = step{kind: "routing", name: "policy", action: unchanged}
	is, err := storedPolicy(ctx, a.server)
	if err != nil {
		return s, false, err
	}
	rules, webhooks, err := policyNames(ctx, a.server)
	if err != nil {
		return s, false, err
	}
	want, err := a.readRoutes()
	if err != nil {
		return s, false, err
	}
	for i := range want {
		for j, name := range want[i].Match.Rules {
			if _, there := rules.id(name); !there {
				if !a.makesRule(name) {
					return s, false, a.misplaced(fmt.Sprintf("routes[%d].match.rules[%d]", i, j), "There is no rule with this name; correct it, or add the rule to the files")
				}
				afterRules = true
			}
		}
		for j, name := range want[i].Webhooks {
			if _, there := webhooks.ids[name]; !there && !a.fresh[name] {
				return s, false, a.misplaced(fmt.Sprintf("routes[%d].webhooks[%d]", i, j), "There is no webhook with this name; correct it, or add the webhook to the files")
			}
		}
		for j := range want[i].Escalation {
			for k, name := range want[i].Escalation[j].Webhooks {
				if _, there := webhooks.ids[name]; !there && !a.fresh[name] {
					return s, false, a.misplaced(fmt.Sprintf("routes[%d].escalation[%d].webhooks[%d]", i, j, k), "There is no webhook with this name; correct it, or add the webhook to the files")
				}
			}
		}
	}
	s.differJSON("routes", routeEntries(is, rules, webhooks), want)
	if s.action == unchanged && is.Problem != nil {
		s.action = updated
	}
	if s.action == updated {
		s.run = func(ctx context.Context) error {
			// A new rule or webhook has no id before the plan is run.
			rules, webhooks, err := policyNames(ctx, a.server)
			if err != nil {
				return err
			}
			d, err := policyDefinition(want, rules, webhooks)
			if err != nil {
				return err
			}
			return a.wrong(answered(a.server.UpdateRoutingPolicyWithResponse(ctx, &api.UpdateRoutingPolicyParams{IfMatch: tag(is.Version)}, d)), "")
		}
	}
	return s, afterRules, nil
}

// exportedRoutes returns the routing policy in the form of a file.
func exportedRoutes(ctx context.Context, server *api.ClientWithResponses) ([]any, error) {
	is, err := storedPolicy(ctx, server)
	if err != nil {
		return nil, err
	}
	rules, webhooks, err := policyNames(ctx, server)
	if err != nil {
		return nil, err
	}
	list := []any{}
	for e := range slices.Values(routeEntries(is, rules, webhooks)) {
		text, err := json.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("encode route: %w", err)
		}
		var entry any
		if err := decode(text, &entry); err != nil {
			return nil, err
		}
		list = append(list, entry)
	}
	return list, nil
}
