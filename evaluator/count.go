package evaluator

import (
	"context"
	"fmt"
	"log/slog"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/notify"
	"tocsin/rules"
)

// COUNT_IN_WINDOW rules count the matching exchanges that began within the
// window that ends at the horizon. ClickHouse counts; the decision is
// [alerts.Window.Next]; the database holds that at most one alert is open for
// each rule and group. What arrives late is counted for as long as the window
// reaches it, so such a rule needs no look-back; its cursor only tells how far
// it has come. A step is made in the transaction that advances the cursor, from
// the state that was read: what a person did meanwhile makes it void, and the
// next tick decides anew.

// Counter counts.
type Counter interface {
	// CountWindow returns the groups of a window that hold a matching exchange,
	// the largest first, at most q.Limit.
	CountWindow(ctx context.Context, q WindowQuery) ([]GroupCount, error)
	// Newest returns the newest exchange of a counted group, the zero exchange
	// when it is no longer there.
	Newest(ctx context.Context, q WindowQuery, g GroupCount) (rules.Exchange, error)
}

// WindowQuery is a window of start times, and what counts in it.
type WindowQuery struct {
	TenantID string
	// FromNS is inclusive, ToNS exclusive.
	FromNS, ToNS int64
	// EndedSinceNS leaves out what ended before the rule was armed.
	EndedSinceNS int64
	GroupBy      rules.GroupBy
	Scope        rules.Scope
	Filter       rules.Filter
	// Limit is the most groups to return.
	Limit int
}

// GroupCount is how often a group matched, and when its newest exchange began.
type GroupCount struct {
	Group    string
	Observed int64
	NewestNS int64
}

// maxGroups bounds the groups of one rule, and so the alerts that it has open.
const maxGroups = 1000

// count evaluates one counting rule, and releases it. Once the budget is spent
// it only releases, and the next tick that is due counts.
func (t *tick) count(ctx context.Context, j *judge) error {
	if t.spent() {
		return t.commitCount(ctx, j, nil)
	}
	rule := &j.claim.Rule
	q := WindowQuery{
		TenantID: rule.TenantID, ToNS: t.horizon.StartTimeNS,
		FromNS:       t.horizon.StartTimeNS - int64(rule.WindowSeconds)*secondNS,
		EndedSinceNS: rule.ArmedSinceNS, GroupBy: rule.GroupBy, Scope: rule.Scope, Filter: rule.Filter, Limit: maxGroups,
	}
	counted, err := t.Source.CountWindow(ctx, q)
	if err != nil {
		return t.fail(ctx, []*judge{j}, fmt.Errorf("count exchanges: %w", err))
	}
	var changes []Change
	for _, g := range withOpen(counted, j.claim.Open) {
		change, err := t.change(ctx, j, q, g)
		if err != nil {
			return t.fail(ctx, []*judge{j}, err)
		}
		if change != nil {
			changes = append(changes, *change)
		}
	}
	if t.horizon.After(j.at) {
		j.at = t.horizon
	}
	return t.commitCount(ctx, j, changes)
}

// commitCount writes the steps of one rule. Where the database refuses them,
// the rule fails alone.
func (t *tick) commitCount(ctx context.Context, j *judge, changes []Change) error {
	g := group{tenantID: j.claim.Rule.TenantID, judges: []*judge{j}}
	done, err := t.Store.Commit(ctx, Batch{ClaimFor: t.ClaimFor, Advances: g.advances(findings{}, true), Changes: changes})
	if err != nil {
		return t.fail(ctx, g.judges, err)
	}
	if len(done.Advanced) == 0 {
		t.result.Stale++
		return nil
	}
	delete(t.told, j.claim.Rule.ID)
	t.result.Alerts += len(done.Inserted)
	t.result.Notifications += done.Notifications
	return nil
}

// groupAtWork is a group that was counted or has an open alert.
type groupAtWork struct {
	GroupCount
	open *OpenAlert
}

// withOpen joins what was counted with what is open. A group that is open and
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

// change decides on one group, and makes what the step writes; nil is nothing.
func (t *tick) change(ctx context.Context, j *judge, q WindowQuery, g groupAtWork) (*Change, error) {
	rule := &j.claim.Rule
	var open *alerts.Open
	if g.open != nil {
		open = &g.open.Open
	}
	window := alerts.WindowOf(&rule.Definition)
	step := window.Next(open, g.Observed, j.claim.Now)
	if step == alerts.Stay {
		return nil, nil //nolint:nilnil // most groups have nothing to change
	}
	instance := alerts.Instance{
		TenantID: rule.TenantID, RuleID: rule.ID, RuleVersion: rule.Version, RuleName: rule.Name, Severity: rule.Severity,
		Count: &alerts.Count{
			Observed: g.Observed, Threshold: rule.Threshold, WindowSeconds: rule.WindowSeconds,
			GroupBy: rule.GroupBy, Group: groupKey(g.Group),
		},
	}
	if g.open != nil {
		instance.ID = g.open.ID
	} else {
		instance.ID = t.NewID()
	}
	if err := t.describe(ctx, j, q, g, &instance); err != nil {
		return nil, err
	}
	return &Change{Step: step, Instance: instance, Notifications: t.owed(&instance, rule, step)}, nil
}

// describe fills in texts and the newest exchange. A group that holds nothing
// any more keeps those that its alert has.
func (t *tick) describe(ctx context.Context, j *judge, q WindowQuery, g groupAtWork, instance *alerts.Instance) error {
	if g.Observed == 0 {
		return nil
	}
	newest, err := t.Source.Newest(ctx, q, g.GroupCount)
	if err != nil {
		return err
	}
	title, message, problem := t.Texts.CountTexts(&j.claim.Rule, instance.Count, &newest)
	if problem != nil {
		j.problem = problem.Error()
		t.Logger.WarnContext(ctx, "texts are a fallback",
			slog.String("rule_id", j.claim.Rule.ID.String()), slog.Any("error", problem))
	}
	instance.Title, instance.Message = title, message
	instance.Exchange = newest.Clean()
	return nil
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
