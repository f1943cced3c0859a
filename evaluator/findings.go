package evaluator

import (
	"maps"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/rules"
)

// findings are alerts and what is owed for them.
type findings struct {
	instances     []alerts.Instance
	notifications []notify.Notification
	// finders are the rules that found them.
	finders map[uuid.UUID]*judge
}

// and returns the findings of both.
func (f findings) and(other findings) findings {
	all := findings{
		instances:     append(f.instances, other.instances...),
		notifications: append(f.notifications, other.notifications...),
		finders:       map[uuid.UUID]*judge{},
	}
	maps.Copy(all.finders, f.finders)
	maps.Copy(all.finders, other.finders)
	return all
}

// raiser makes alerts.
type raiser struct {
	newID func() uuid.UUID
	texts Texts
}

func (r raiser) add(f *findings, j *judge, e *rules.Exchange, late bool) {
	rule := &j.claim.Rule
	title, message, problem := r.texts.Texts(rule, e)
	if problem != nil && j.problem == "" {
		j.problem = problem.Error()
	}
	alert := alerts.Instance{
		ID: r.newID(), TenantID: rule.TenantID, RuleID: rule.ID, RuleVersion: rule.Version, RuleName: rule.Name,
		Severity: rule.Severity, State: alerts.Firing, Title: title, Message: message, Exchange: e.Clean(), Late: late,
	}
	f.instances = append(f.instances, alert)
	if f.finders == nil {
		f.finders = map[uuid.UUID]*judge{}
	}
	f.finders[rule.ID] = j
	for _, webhook := range rule.WebhookIDs {
		f.notifications = append(f.notifications, notify.Notification{
			ID: r.newID(), TenantID: rule.TenantID, AlertID: alert.ID, RuleID: rule.ID,
			WebhookID: webhook, Reason: notify.ReasonFired, Status: notify.Pending,
		})
	}
}
