package evaluator

import (
	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/rules"
)

// alertKey is the id of an alert about an exchange.
type alertKey = uuid.UUID

// findings are the alerts that a page raises, and their notifications.
type findings struct {
	instances     []alerts.Instance
	notifications []notify.Notification
	// problems are those of rules whose texts are a fallback.
	problems map[uuid.UUID]string
	ids      map[alertKey]bool
}

// reaches reports whether a rule judges an exchange that begins at an instant, where the
// look-back is counted from baseNS.
func (r *rule) reaches(startNS, baseNS int64) bool {
	return startNS >= baseNS || startNS >= baseNS-r.reachNS()
}

// judge returns what a page raises, by all rules of the partition that do not fail. What
// is known to have its alert is left out.
func (p *pass) judge(page []rules.Exchange) findings {
	var f findings
	for i := range page {
		e := &page[i]
		t := p.rules.of(e.TenantID)
		if t == nil {
			continue
		}
		for _, number := range t.index.Candidates(e) {
			r := t.rules[number]
			if r.failing || !r.reaches(e.StartTimeNS, p.memory.baseNS) || !r.Wants(e) {
				continue
			}
			p.raise(&f, r, e, e.StartTimeNS < p.memory.baseNS)
		}
	}
	return f
}

// judgeFor returns what a page raises by rules that read it for themselves.
func (p *pass) judgeFor(list []*rule, page []rules.Exchange) findings {
	var f findings
	for i := range page {
		e := &page[i]
		for _, r := range list {
			if r.TenantID == e.TenantID && e.Position().After(r.backfill.At) && r.Wants(e) {
				// What the rule reads for itself is behind the partition's cursor, not its own.
				p.raise(&f, r, e, e.StartTimeNS < r.ArmedSinceNS)
			}
		}
	}
	return f
}

// raise adds the alert of a rule about an exchange, unless it is known to exist. It is late
// where the exchange was found behind a cursor.
func (p *pass) raise(f *findings, r *rule, e *rules.Exchange, late bool) {
	id := AlertID(r.ID, e)
	if _, known := p.memory.raised[id]; known || f.ids[id] {
		return // its row is stored twice, or its second is judged again
	}
	if f.ids == nil {
		f.ids = map[alertKey]bool{}
	}
	f.ids[id] = true
	title, message, problem := p.Texts.Texts(&r.Rule, e)
	if problem != nil {
		if f.problems == nil {
			f.problems = map[uuid.UUID]string{}
		}
		f.problems[r.ID] = problem.Error()
	}
	f.instances = append(f.instances, alerts.Instance{
		ID: id, TenantID: r.TenantID, RuleID: r.ID, RuleVersion: r.Version, RuleName: r.Name,
		Severity: r.Severity, State: alerts.Firing, Title: title, Message: message, Exchange: e.Clean(),
		Late: late,
	})
	for _, webhook := range r.WebhookIDs {
		f.notifications = append(f.notifications, notify.Notification{
			ID: notify.ID(id, webhook, notify.ReasonFired, 0), TenantID: r.TenantID, AlertID: id, RuleID: r.ID,
			WebhookID: webhook, Reason: notify.ReasonFired, Status: notify.Pending,
		})
	}
}

// of returns the findings of some rules.
func (f *findings) of(wanted map[uuid.UUID]bool) findings {
	own := findings{problems: f.problems}
	for i := range f.instances {
		if wanted[f.instances[i].RuleID] {
			own.instances = append(own.instances, f.instances[i])
		}
	}
	for i := range f.notifications {
		if wanted[f.notifications[i].RuleID] {
			own.notifications = append(own.notifications, f.notifications[i])
		}
	}
	return own
}

// finders returns the rules that found anything, in the order of their findings.
func (f *findings) finders() []uuid.UUID {
	var ids []uuid.UUID
	seen := map[uuid.UUID]bool{}
	for i := range f.instances {
		if id := f.instances[i].RuleID; !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}
