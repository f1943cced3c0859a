package storetest

import (
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/evaluator/resolution"
	"tocsin/notify"
	"tocsin/rules"
)

// resolves has the rule resolve its alerts in a way, and notify of that.
func (l *law) resolves(by rules.Resolution) {
	l.Helper()
	l.rule.Resolution, l.rule.NotifyOnResolve = &by, true
	var err error
	l.rule, err = l.UpdateRule(l.rule)
	l.must(err)
	l.hold("a")
}

func byCorrelation() rules.Resolution { return rules.Resolution{Evidence: rules.EvidenceCorrelation} }

// take takes the rule, which has to be due.
func (l *law) take() *resolution.Rule {
	l.Helper()
	r, err := l.Resolution.Take(l.Context(), 0)
	l.must(err)
	if r == nil || r.ID != l.rule.ID {
		l.Fatalf("taken is %+v", r)
	}
	return r
}

// alertsRaised raises alerts, oldest first.
func (l *law) alertsRaised(n int) (ids []uuid.UUID) {
	l.Helper()
	for range n {
		b := l.batch(l.rule)
		l.commit(b)
		ids = append(ids, b.Instances[0].ID)
		l.Advance(time.Second)
		l.hold("a")
	}
	return ids
}

// end returns the message that says to the webhook that an alert was resolved.
func (l *law) end(alert uuid.UUID) uuid.UUID {
	return notify.ID(alert, l.webhook, notify.ReasonResolved, 0)
}

// proven resolves alerts by evidence, and returns how many.
func (l *law) proven(r *resolution.Rule, ids ...uuid.UUID) int {
	l.Helper()
	var proofs []resolution.Proof
	for _, id := range ids {
		proofs = append(proofs, resolution.Proof{AlertID: id, Evidence: alerts.Resolution{Reason: alerts.ByEvidence, ExecutionID: "later", StartTimeNS: new(int64(7))}})
	}
	n, err := l.Resolution.ResolveProven(l.Context(), r, proofs)
	l.must(err)
	return n
}

func (l *law) aged(r *resolution.Rule, most int) int {
	l.Helper()
	n, err := l.Resolution.ResolveAged(l.Context(), r, most)
	l.must(err)
	return n
}

func resolvedByAge(l *law) {
	l.resolves(rules.Resolution{AfterSeconds: 3600})
	ids := l.alertsRaised(4)
	l.must(l.Resolve(ids[0]))
	l.equal("resolved while they are young", l.aged(l.take(), 10), 0)
	l.Advance(time.Hour)
	l.hold("a")
	young := l.alertsRaised(1)
	r := l.take()
	l.equal("resolved, two at most", l.aged(r, 2), 2)
	for i, want := range []alerts.State{alerts.Resolved, alerts.Resolved, alerts.Resolved, alerts.Firing} {
		l.equal("state", l.Alert(ids[i]), want)
	}
	l.equal("resolved after these", l.aged(r, 10), 1)
	l.equal("resolved again", l.aged(r, 10), 0)
	l.equal("the young one", l.Alert(young[0]), alerts.Firing)
	for _, id := range ids[1:] {
		l.is(l.end(id), notify.Pending)
	}
	// Of each alert, the end follows what was to be said before.
	l.equal("claimed", len(l.claim("a", 20)), 5)
	l.resolves(byCorrelation())
	l.Advance(2 * time.Hour)
	l.equal("resolved by the rule as it was", l.aged(r, 10), 0)
}

func resolvedByEvidence(l *law) {
	l.resolves(byCorrelation())
	ids := l.alertsRaised(3)
	r := l.take()
	open := func(after *resolution.Open, most int) []resolution.Open {
		l.Helper()
		list, err := l.Resolution.Open(l.Context(), r, after, most)
		l.must(err)
		return list
	}
	list := open(nil, 2)
	if len(list) != 2 || list[0].ID != ids[2] || list[1].ID != ids[1] || list[0].Key.Application != "orders" || list[0].EndedNS == 0 || list[0].ExecutionID == "" {
		l.Fatalf("open are %+v", list)
	}
	if rest := open(&list[1], 2); len(rest) != 1 || rest[0].ID != ids[0] {
		l.Fatalf("open after them are %+v", rest)
	}
	l.must(l.Resolve(ids[2]))
	l.equal("resolved", l.proven(r, ids...), 2)
	l.equal("resolved again", l.proven(r, ids...), 0)
	l.is(l.end(ids[0]), notify.Pending)
	l.equal("open", len(open(nil, 9)), 0)
	// Without the wish, nobody is notified.
	l.rule.NotifyOnResolve = false
	var err error
	l.rule, err = l.UpdateRule(l.rule)
	l.must(err)
	l.hold("a")
	quiet := l.alertsRaised(1)
	l.equal("resolved", l.proven(r, quiet...), 1)
	l.equal("claimed", len(l.claim("a", 20)), 4)
}

func resolutionEdited(l *law) {
	l.resolves(byCorrelation())
	ids := l.alertsRaised(1)
	r := l.take()
	l.resolves(rules.Resolution{Evidence: rules.EvidenceAttribute, Attribute: "order"})
	l.equal("resolved by what the rule said before", l.proven(r, ids...), 0)
	l.equal("state", l.Alert(ids[0]), alerts.Firing)
	l.equal("resolved by what it says", l.proven(l.take(), ids...), 1)
}

func resolutionTaken(l *law) {
	every := 15 * time.Second
	take := func() *resolution.Rule {
		l.Helper()
		r, err := l.Resolution.Take(l.Context(), every)
		l.must(err)
		return r
	}
	l.equal("a rule that resolves nothing is taken", take() != nil, false)
	l.resolves(byCorrelation())
	l.equal("taken", take() != nil, true)
	l.equal("taken by two", take() != nil, false)
	l.Advance(-time.Hour)
	l.equal("taken although the clock was set back", take() != nil, true)
	l.equal("taken by two after that", take() != nil, false)
	l.Advance(every)
	r := take()
	if r == nil || r.Searched != nil || r.TenantID != Tenant || r.LookBack != time.Hour || r.Resolution != byCorrelation() {
		l.Fatalf("taken is %+v", r)
	}
	l.must(l.Resolution.MarkSearched(l.Context(), r, resolution.Searched{ToNS: 77, At: r.TakenAt}))
	if r = l.take(); r.Searched == nil || r.Searched.ToNS != 77 {
		l.Fatalf("searched to %+v", r.Searched)
	}
	l.resolves(rules.Resolution{Evidence: rules.EvidenceCorrelation, AfterSeconds: 60})
	if r = l.take(); r.Searched == nil {
		l.Fatal("an edit of the age makes the mark void")
	}
	l.resolves(rules.Resolution{Evidence: rules.EvidenceAttribute, Attribute: "order"})
	if r = l.take(); r.Searched != nil {
		l.Fatalf("other evidence was searched to %+v", r.Searched)
	}
}

// resolvedAfterQuiet has an alert be acknowledged for so long when quiet hours end that its message is of no use
// any more. A webhook that was not notified of the alert by then is not notified of its end either.
func resolvedAfterQuiet(l *law) {
	l.quietWebhook()
	l.resolves(byCorrelation())
	alert, message := l.raiseQuiet(rules.Warning, 0)
	_, err := l.Act(uuid.UUID{15: 9}, alerts.Acknowledge, alert)
	l.must(err)
	l.Advance(61 * time.Minute)
	l.hold("a")
	l.endQuiet("after them", 0)
	l.is(message, notify.Discarded, "NOT_MADE")
	l.must(l.EditQuietHours(l.webhook, nil))
	r := l.take()
	l.equal("resolved", l.proven(r, alert), 1)
	l.equal("claimed", len(l.claim("a", 9)), 0)
	heard, _ := l.raiseQuiet(rules.Warning, 1)
	l.equal("resolved", l.proven(r, heard), 1)
	l.is(l.end(heard), notify.Pending)
}

func resolvedInSilence(l *law) {
	l.resolves(byCorrelation())
	id := l.silence("one", 0, orders())
	ids := l.alertsRaised(1)
	l.must(l.EndSilence(id))
	l.equal("resolved", l.proven(l.take(), ids...), 1)
	// A webhook that was not notified of an alert is not notified of its end.
	l.equal("suppressed by", l.SuppressedBy(l.end(ids[0])), id)
	heard := l.alertsRaised(1)
	id = l.silence("another", 0, orders())
	l.equal("resolved", l.proven(l.take(), heard...), 1)
	l.equal("suppressed by", l.SuppressedBy(l.end(heard[0])), id)
	l.equal("claimed", len(l.claim("a", 9)), 1)
}
