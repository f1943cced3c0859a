package evaluator

import (
	"context"
	"log/slog"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/notify"
	"tocsin/rules"
)

// groupAtWork is a group that was counted or has an open alert.
type groupAtWork struct {
	GroupCount
	open *OpenAlert
}

// withOpen joins what was counted, which comes first, with what is open. A group that is open and
// was not counted holds nothing any more.
func withOpen(counted []GroupCount, open []OpenAlert) []groupAtWork {
	byGroup := make(map[string]*OpenAlert, len(open))
	for i := range open {
		byGroup[open[i].Group] = &open[i]
	}
	var out []groupAtWork
	for _, g := range counted {
		key := groupKey(g.Group)
		out = append(out, groupAtWork{GroupCount: g, open: byGroup[key]})
		delete(byGroup, key)
	}
	for i := range open {
		if byGroup[open[i].Group] != nil {
			out = append(out, groupAtWork{GroupCount: GroupCount{Group: open[i].Group}, open: &open[i]})
		}
	}
	return out
}

// groupKey returns a group as it is stored.
func groupKey(group string) string { return cursor.Key(group) }

// change decides on one group, and makes what the step writes, but for its texts; nil
// is nothing. A group that holds nothing any more keeps those that its alert has.
func (t *tick) change(j *judge, g groupAtWork) *Change {
	rule := &j.claim.Rule
	var open *alerts.Open
	if g.open != nil {
		open = &g.open.Open
	}
	window := alerts.WindowOf(&rule.Definition)
	step := window.Next(open, g.Observed, j.claim.Now)
	if step == alerts.Stay {
		return nil // as for most groups
	}
	instance := alerts.Instance{
		TenantID: rule.TenantID, RuleID: rule.ID, RuleVersion: rule.Version, RuleName: rule.Name, Severity: rule.Severity,
		Count: &alerts.Count{
			Observed: g.Observed, Threshold: rule.Threshold, WindowSeconds: rule.WindowSeconds,
			GroupBy: rule.GroupBy, Group: groupKey(g.Group),
		},
	}
	if g.open != nil {
		// A group that holds nothing any more is known by its key alone.
		instance.ID, instance.Count.Group = g.open.ID, g.open.Group
	} else {
		instance.ID = t.NewID()
	}
	return &Change{Step: step, Instance: instance, Notifications: t.owed(&instance, rule, step)}
}

// describe fills in texts and the newest exchange.
func (t *tick) describe(ctx context.Context, j *judge, instance *alerts.Instance, newest *rules.Exchange) {
	title, message, problem := t.Texts.CountTexts(&j.claim.Rule, instance.Count, newest)
	if problem != nil {
		j.problem = problem.Error()
		t.Logger.WarnContext(ctx, "texts are a fallback",
			slog.String("rule_id", j.claim.Rule.ID.String()), slog.Any("error", problem))
	}
	instance.Title, instance.Message = title, message
	instance.Exchange = newest.Clean()
}

// owed returns the notifications of a step.
func (t *tick) owed(instance *alerts.Instance, rule *rules.Rule, step alerts.Step) []notify.Notification {
	var reason notify.Reason
	switch step {
	case alerts.Raise, alerts.Fire:
		reason = notify.ReasonFired
	case alerts.Remind:
		reason = notify.ReasonReminder
	case alerts.Clear:
		if !rule.NotifyOnResolve {
			return nil
		}
		reason = notify.ReasonResolved
	case alerts.Stay, alerts.Wait, alerts.Drop:
		return nil
	}
	owed := make([]notify.Notification, len(rule.WebhookIDs))
	for i, webhook := range rule.WebhookIDs {
		owed[i] = notify.Notification{
			ID: t.NewID(), TenantID: rule.TenantID, AlertID: instance.ID, RuleID: rule.ID,
			WebhookID: webhook, Reason: reason, Status: notify.Pending,
		}
	}
	return owed
}
