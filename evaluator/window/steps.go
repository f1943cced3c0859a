package window

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/alerts/routing"
	"tocsin/cursor"
	"tocsin/evaluator/window/counting"
	"tocsin/internal/fault"
	"tocsin/notify"
	"tocsin/rules"
)

// tooManyGroups is the problem of a rule with more groups than it may have alerts.
const tooManyGroups = "1000 groups have an alert, and further groups reach the threshold: they have none until others end; group by something with fewer values, narrow the scope, or raise the threshold"

// change is a step, and the group that it concerns.
type change struct {
	Change
	group counting.Group
}

// described reports whether the step writes texts and the newest exchange. Other steps keep those
// of the time when the alert fired.
func (c *change) described() bool {
	switch c.Step {
	case alerts.Wait, alerts.Raise, alerts.Fire, alerts.Remind:
		return true
	case alerts.Stay, alerts.Drop, alerts.Clear, alerts.Release:
	}
	return false
}

// conclude decides on counted windows. One on durations whose alert changes is counted again if its
// percentiles are missing.
func (p *pass) conclude(ctx context.Context, windows []*counting.Window) {
	var describe []*counting.Window
	for _, w := range windows {
		p.guarded(ctx, w, func() {
			if w.Learns {
				p.learn(w)
				return
			}
			it := &p.items[w.Number]
			p.steps(it)
			if len(it.changes) > 0 && w.Recount() {
				return
			}
			if it.Absent() {
				p.describeAbsent(ctx, it)
			} else if w.Groups = it.wanted(); len(w.Groups) > 0 {
				describe = append(describe, w)
				return
			}
			p.finish(it)
		})
	}
	p.counts.Newest(ctx, describe, func(w *counting.Window, newest []rules.Exchange) {
		p.guarded(ctx, w, func() {
			it, next := &p.items[w.Number], 0
			for i := range it.changes {
				if it.changes[i].described() {
					p.describe(ctx, it, &it.changes[i].Instance, &newest[next])
					it.changes[i].keepInstants(&newest[next])
					next++
				}
			}
			p.finish(it)
		})
	})
}

// wanted returns the groups with a step that writes the newest exchange.
func (it *item) wanted() (groups []counting.Group) {
	for i := range it.changes {
		if c := &it.changes[i]; c.described() {
			groups = append(groups, c.group)
		}
	}
	return groups
}

// guarded does something about a window. If that panics, its rule has failed, and the others go on.
func (p *pass) guarded(ctx context.Context, w *counting.Window, do func()) {
	if err := fault.Guard(func() error { do(); return nil }); err != nil {
		p.out.Failed[w.ID] = fmt.Errorf("evaluate the rule: %w", err)
		p.Logger.ErrorContext(ctx, "a window rule panicked", slog.String("rule_id", w.ID.String()), slog.Any("error", err), fault.Stack(err))
	}
}

// finish passes on the result of an item.
func (p *pass) finish(it *item) {
	for i := range it.changes {
		p.out.Changes = append(p.out.Changes, it.changes[i].Change)
	}
	p.out.Evaluated = append(p.out.Evaluated, it.ID)
	if it.problem != "" {
		p.out.Problems[it.ID] = it.problem
	}
}

// steps decides on the groups of one rule. Groups with an open alert come first: they are always
// counted, whatever others contain, and alerts that end make room for others.
func (p *pass) steps(it *item) {
	if it.Absent() {
		p.absences(it)
		return
	}
	if it.changes, it.problem = nil, ""; len(it.Groups)+len(it.Open) == 0 {
		return
	}
	it.room = counting.MaxGroups - len(it.Open)
	for _, g := range withOpen(it.Groups, it.Open) {
		value := g.Value()
		value.Partial, value.ArmedAt = it.Partial(), time.Unix(0, it.ArmedSinceNS)
		p.decide(it, g, value)
	}
}

// decide decides on a group, and opens an alert only if the rule has room for it.
func (p *pass) decide(it *item, g groupAtWork, value alerts.Value) {
	var open *alerts.Open
	if g.open != nil {
		open = &g.open.Open
	}
	step := it.Bound.Next(open, value, p.request.Now)
	switch {
	case step == alerts.Stay || step.Lessens() && !it.Absent() && it.lags(&g):
		return
	case open == nil && it.room <= 0:
		it.problem = tooManyGroups
		return
	case open == nil:
		it.room--
	case step.Lessens():
		it.room++
	}
	it.changes = append(it.changes, p.change(it, g, step))
}

// lags reports whether an answer lacks the exchange that the alert of a group is about, although it
// should still be in the window. Then the server that answered is behind the one that answered
// before. What it does not see yet must not resolve anything; a pass that asks a server without lag
// decides. It also lacks the exchange if the window ends before it, by a clock that is behind.
//
// This also holds after an edit of the rule's note or its threshold: the exchange still counts, and
// no false message should follow from an edit. The exchange does not count any more after an edit
// of scope, filter or mode, which arms the rule again after the exchange had ended, and after an
// edit of a duration that the exchange did not reach. An edit of the grouping ends the alert.
func (it *item) lags(g *groupAtWork) bool {
	o := g.open
	if o == nil || o.LeastNS < it.LeastNS() {
		return false
	}
	if o.NewestEndedNS >= it.ToNS {
		return true // the clock of this server is behind that of the one that counted it
	}
	return it.Covers(o.NewestEndedNS, o.NewestStartNS) &&
		cmp.Or(cmp.Compare(g.NewestEndedNS, o.NewestEndedNS), cmp.Compare(g.NewestStartNS, o.NewestStartNS)) < 0
}

// groupAtWork is a group that was counted or has an alert.
type groupAtWork struct {
	counting.Group
	open *alerts.OpenAlert
}

// withOpen joins the open alerts, which come first, with the counted groups. A group with an open
// alert that was not counted is empty.
func withOpen(counted []counting.Group, open []alerts.OpenAlert) []groupAtWork {
	out := make([]groupAtWork, 0, len(counted)+len(open))
	byKey := make(map[string]int, len(open))
	for i := range open {
		out = append(out, groupAtWork{counting.Group{Group: open[i].Group}, &open[i]})
		byKey[open[i].Group] = i
	}
	for _, g := range counted {
		if i, ok := byKey[cursor.Key(g.Group)]; ok {
			out[i].Group = g
		} else {
			out = append(out, groupAtWork{g, nil})
		}
	}
	return out
}

// change returns what a step writes, without its texts.
func (p *pass) change(it *item, g groupAtWork, step alerts.Step) change {
	a := alerts.Instance{
		TenantID: it.TenantID, RuleID: it.ID, RuleVersion: it.Version, RuleName: it.Name, Severity: it.Severity,
		Count: new(alerts.CountOf(&it.Definition)),
	}
	a.Count.Group, a.Count.Observed, a.Count.Volume = cursor.Key(g.Group.Group), g.Observed, g.Volume
	a.Count.ShortObserved, a.Count.ShortVolume, a.Count.DurationNS = g.ShortObserved, g.ShortVolume, g.DurationNS
	a.Count.ToNS = it.ToNS
	reminders := 0
	if g.open != nil {
		// For an empty group only its key is known.
		a.ID, a.Count.Group, reminders = g.open.ID, g.open.Group, g.open.Reminders
	} else {
		a.ID = alerts.WindowID(it.ID, a.Count.Group, uuid.Nil, p.request.WatermarkNS)
	}
	c := change{Change{Step: step, Instance: a}, g.Group}
	switch step {
	case alerts.Raise, alerts.Fire:
		c.notify(it, g.open, notify.ReasonFired, 0)
	case alerts.Remind:
		c.notify(it, g.open, notify.ReasonReminder, reminders)
	case alerts.Clear: // the store knows which webhooks were notified of the alert, and so of its end
	case alerts.Stay, alerts.Wait, alerts.Drop, alerts.Release:
	}
	return c
}

// notify adds one notification for each webhook to notify of the step. An alert that was routed
// keeps its routing, whatever its rule and the policy say now.
func (c *change) notify(it *item, open *alerts.OpenAlert, reason notify.Reason, generation int) {
	var webhooks []uuid.UUID
	if open != nil && open.Routing != nil {
		webhooks = open.Routing.WebhookIDs()
	} else {
		webhooks = routing.Recipients(it.Rule, it.Router, &c.Instance)
		if c.Instance.Routing != nil && reason == notify.ReasonReminder {
			// Its steps count from the instant at which it fired, when nobody had routed it.
			c.Instance.Routing = c.Instance.Routing.WithoutEscalation()
		}
	}
	c.Notifications = make([]notify.Notification, len(webhooks))
	for i, webhook := range webhooks {
		c.Notifications[i] = notify.Notification{
			ID: notify.ID(c.Instance.ID, webhook, reason, generation), TenantID: it.TenantID, AlertID: c.Instance.ID, RuleID: it.ID,
			WebhookID: webhook, Reason: reason, Status: notify.Pending,
		}
	}
}

// keepInstants notes when the newest exchange began and ended where the server that was asked for it does
// not show it. One that lags, and therefore does not show it either, must not resolve the alert.
func (c *change) keepInstants(newest *rules.Exchange) {
	if newest.ExecutionID == "" {
		c.Instance.Exchange.StartTimeNS, c.Instance.Exchange.EndTimeNS = c.group.NewestStartNS, new(c.group.NewestEndedNS)
	}
}

// describe fills in the texts and the exchange of an alert.
func (p *pass) describe(ctx context.Context, it *item, a *alerts.Instance, newest *rules.Exchange) {
	title, message, problem := p.Texts.CountTexts(it.Rule, a.Count, newest)
	if problem != nil {
		it.problem = problem.Error()
		p.Logger.WarnContext(ctx, "the templates of a rule cannot be rendered, so default texts are used; correct them", slog.String("rule_id", it.ID.String()), slog.Any("error", problem))
	}
	a.Title, a.Message, a.Exchange = title, message, newest.Clean()
}
