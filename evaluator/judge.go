package evaluator

import (
	"slices"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/notify"
	"tocsin/rules"
)

// judge is a claimed rule at work: its matcher, and how far it has come in this tick.
type judge struct {
	claim   Claim
	matcher *rules.Matcher
	// from is the cursor in the database, at is where judging stands.
	from *cursor.Position
	at   cursor.Position
	// problem is the first that came up while judging in this tick.
	problem string
}

// group is rules of one tenant that share scans.
type group struct {
	tenantID string
	judges   []*judge
}

// spreadNS is how far apart the cursors of one group may be. A rule that lags
// more reads its own way until it has caught up, and slows no other.
const spreadNS = int64(60e9)

// groups partitions judges by tenant and by nearness of their cursors.
func groups(judges []*judge) []group {
	judges = slices.Clone(judges)
	slices.SortStableFunc(judges, func(a, b *judge) int {
		if a.claim.Rule.TenantID != b.claim.Rule.TenantID {
			if a.claim.Rule.TenantID < b.claim.Rule.TenantID {
				return -1
			}
			return 1
		}
		return a.at.Compare(b.at)
	})
	var out []group
	for _, j := range judges {
		tenant := j.claim.Rule.TenantID
		if n := len(out); n > 0 && out[n-1].tenantID == tenant &&
			j.at.StartTimeNS-out[n-1].judges[0].at.StartTimeNS <= spreadNS {
			out[n-1].judges = append(out[n-1].judges, j)
			continue
		}
		out = append(out, group{tenantID: tenant, judges: []*judge{j}})
	}
	return out
}

// start returns the earliest position that a judge of the group stands at.
func (g *group) start() cursor.Position {
	return slices.MinFunc(g.judges, func(a, b *judge) int { return a.at.Compare(b.at) }).at
}

// statuses returns the union of what the group's rules can match, in a fixed order.
func (g *group) statuses() []rules.Status {
	var union []rules.Status
	for _, status := range []rules.Status{rules.Completed, rules.Failed} {
		if slices.ContainsFunc(g.judges, func(j *judge) bool {
			return slices.Contains(j.claim.Rule.Filter.StatusesOrDefault(), status)
		}) {
			union = append(union, status)
		}
	}
	return union
}

// forward judges a page that a scan found after the group's start, and moves
// every judge to the position where the page ends. It returns what the rules
// raise.
func (g *group) forward(page []rules.Exchange, end cursor.Position, raise raiser) findings {
	var f findings
	for _, j := range g.judges {
		for i := range page {
			if e := &page[i]; e.Position().After(j.at) && j.wants(e) {
				raise.add(&f, j, e)
			}
		}
		if end.After(j.at) {
			j.at = end
		}
	}
	return f
}

// wants reports whether the rule raises an alert for e.
func (j *judge) wants(e *rules.Exchange) bool {
	return e.EndedSince(j.claim.Rule.ArmedSinceNS) && j.matcher.Match(e)
}

// moved reports whether the rule stands elsewhere than its cursor in the database.
func (j *judge) moved() bool { return j.from == nil || *j.from != j.at }

// advances returns the movements of the group's cursors since the last commit.
func (g *group) advances(release bool) []Advance {
	var out []Advance
	for _, j := range g.judges {
		if !release && !j.moved() {
			continue
		}
		out = append(out, Advance{
			RuleID: j.claim.Rule.ID, Token: j.claim.Token, Version: j.claim.Rule.Version,
			From: j.from, To: j.at, Release: release, Problem: j.problem,
		})
	}
	return out
}

// findings are alerts and what is owed for them.
type findings struct {
	instances     []alerts.Instance
	notifications []notify.Notification
}

// raiser makes alerts.
type raiser struct {
	newID func() uuid.UUID
	texts Texts
}

func (r raiser) add(f *findings, j *judge, e *rules.Exchange) {
	rule := &j.claim.Rule
	title, message, problem := r.texts.Texts(rule, e)
	if problem != nil && j.problem == "" {
		j.problem = problem.Error()
	}
	alert := alerts.Instance{
		ID: r.newID(), TenantID: rule.TenantID, RuleID: rule.ID, RuleVersion: rule.Version, RuleName: rule.Name,
		Severity: rule.Severity, State: alerts.Firing, Title: title, Message: message, Exchange: e.Clean(),
	}
	f.instances = append(f.instances, alert)
	for _, webhook := range rule.WebhookIDs {
		f.notifications = append(f.notifications, notify.Notification{
			ID: r.newID(), TenantID: rule.TenantID, AlertID: alert.ID, RuleID: rule.ID,
			WebhookID: webhook, Reason: notify.ReasonFired, Status: notify.Pending,
		})
	}
}
