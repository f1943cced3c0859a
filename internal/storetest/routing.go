package storetest

import (
	"reflect"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/alerts/match"
	"tocsin/alerts/routing"
	"tocsin/evaluator/ruleset"
	"tocsin/evaluator/window"
	"tocsin/notify"
	"tocsin/rules"
)

// routedRule creates a rule that uses the routing policy, and lets replica a read it.
func (l *law) routedRule() rules.Rule {
	l.Helper()
	d := definition("routed")
	d.UseRoutingPolicy = true
	r, err := l.CreateRule(d)
	l.must(err)
	l.hold("a")
	return r
}

// toWebhook is a policy with one route, from orders to the webhook.
func (l *law) toWebhook() routing.Policy {
	return routing.Policy{Routes: []routing.Route{{Name: "orders", Match: orders(), WebhookIDs: []uuid.UUID{l.webhook}}}}
}

// stored returns a rule if it changed after a revision; otherwise nil.
func (l *law) stored(id uuid.UUID, after int64) *ruleset.Stored {
	l.Helper()
	set := l.rules(after)
	for i := range set.Rules {
		if set.Rules[i].Rule.ID == id {
			return &set.Rules[i]
		}
	}
	return nil
}

func policyChanges(l *law) {
	r := l.routedRule()
	b := l.batch(r)
	l.must(l.ReplacePolicy(1, l.toWebhook()))
	l.stale(b)
	l.hold("a")
	b = l.batch(r)
	if l.ReplacePolicy(1, routing.Policy{}) == nil {
		l.Error("a former version of the policy is edited")
	}
	l.commit(b) // nothing has changed
	b = l.batch(r)
	l.must(l.ReplacePolicy(2, routing.Policy{}))
	l.stale(b)
	l.hold("a")
	l.must(l.ReplacePolicy(3, l.toWebhook()))
}

func policyRead(l *law) {
	r := l.routedRule()
	subject := func(app string) *match.Subject {
		return &match.Subject{RuleID: r.ID, Severity: r.Severity, Exchange: &rules.Exchange{Status: rules.Failed, Application: app}}
	}
	first := l.stored(r.ID, 0)
	if first == nil || first.Err != nil || first.Router == nil {
		l.Fatalf("the rule is read as %+v", first)
	}
	if got := first.Router.Route(subject("orders")); !reflect.DeepEqual(got, &alerts.Routing{Version: 1}) {
		l.Errorf("by the policy that nobody has edited: %+v", got)
	}
	before := l.at.RulesRevision
	l.equal("read again though nothing has changed", l.stored(r.ID, before) == nil, true)
	l.must(l.ReplacePolicy(1, l.toWebhook()))
	l.hold("a")
	l.equal("another rule has changed with the policy", l.stored(l.rule.ID, before) == nil, true)
	changed := l.stored(r.ID, before)
	if changed == nil || changed.Err != nil || changed.Router == nil {
		l.Fatalf("after the change of the policy the rule is read as %+v", changed)
	}
	l.equal("to the webhook", changed.Router.Route(subject("orders")).WebhookIDs()[0], l.webhook)
	l.equal("elsewhere", changed.Router.Route(subject("billing")).Answer(), alerts.NoRoute)
	if own := l.stored(l.rule.ID, 0); own == nil || own.Router != nil {
		l.Errorf("a rule with webhooks of its own is read as %+v", own)
	}
}

func routedAlert(l *law) {
	r := l.routedRule()
	l.must(l.ReplacePolicy(1, l.toWebhook()))
	l.hold("a")
	want := &alerts.Routing{Version: 2, Routes: []alerts.RouteTaken{{Name: "orders", WebhookIDs: []uuid.UUID{l.webhook}}}}
	nowhere := &alerts.Routing{Version: 2}
	b := l.batch(r, r, l.rule)
	b.Instances[0].Routing, b.Instances[1].Routing = want, nowhere
	l.equal("alerts", len(l.commit(b).Inserted), 3)
	for i, want := range []*alerts.Routing{want, nowhere, nil} {
		if got := l.Routing(b.Instances[i].ID); !reflect.DeepEqual(got, want) {
			l.Errorf("alert %d is stored with %+v, want %+v", i, got, want)
		}
	}
}

func routedWindow(l *law) {
	d := definition("counts")
	d.UseRoutingPolicy = true
	d.FireMode, d.Threshold, d.WindowSeconds, d.GroupBy, d.LookBackSeconds = rules.CountInWindow, 2, 60, rules.GroupByApplication, 0
	r, err := l.CreateRule(d)
	l.must(err)
	l.hold("a")
	first := &alerts.Routing{Version: 1, DefaultWebhookIDs: []uuid.UUID{l.webhook}}
	second := &alerts.Routing{Version: 2}
	step := func(step alerts.Step, id uuid.UUID, group string, reason notify.Reason, routing *alerts.Routing) {
		l.Helper()
		b := l.batch()
		b.Changes = []window.Change{l.change(&r, step, id, group, reason)}
		b.Changes[0].Instance.Routing = routing
		done := l.commit(b)
		l.equal("made", len(done.Inserted)+len(done.Changed), 1)
	}
	has := func(group string, want *alerts.Routing) {
		l.Helper()
		open, there := l.openOrHeld(&r, group)
		if !there || !reflect.DeepEqual(open.Routing, want) {
			l.Errorf("%s is open with %+v, want %+v", group, open.Routing, want)
		}
	}
	waits, fires := uuid.UUID{1, 6: 0x80, 8: 0x80, 15: 1}, uuid.UUID{1, 6: 0x80, 8: 0x80, 15: 2}
	step(alerts.Wait, waits, "orders", "", nil)
	has("orders", nil)
	step(alerts.Fire, waits, "orders", notify.ReasonFired, first)
	has("orders", first)
	step(alerts.Remind, waits, "orders", notify.ReasonReminder, second)
	has("orders", first)
	step(alerts.Raise, fires, "billing", notify.ReasonFired, second)
	has("billing", second)
	l.equal("stored", l.Routing(waits).Answer(), alerts.RoutedByDefault)
}
