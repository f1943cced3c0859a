package storetest

import (
	"time"

	"github.com/google/uuid"

	"tocsin/alerts/match"
	"tocsin/alerts/silences"
	"tocsin/evaluator/ruleset"
	"tocsin/notify"
	"tocsin/rules"
)

// silence returns a silence of an hour that begins after the given time.
func (l *law) silence(name string, later time.Duration, m match.Match) uuid.UUID {
	l.Helper()
	l.hold("a")
	starts := l.now.Add(later)
	ends := starts.Add(time.Hour)
	id, err := l.CreateSilence(silences.Definition{Name: name, Match: m, StartsAt: starts, EndsAt: &ends})
	l.must(err)
	return id
}

// suppressed raises an alert, and checks that its message is suppressed by the given silence or,
// for [uuid.Nil], is to be sent.
func (l *law) suppressed(by uuid.UUID) uuid.UUID {
	l.Helper()
	l.hold("a")
	b := l.batch(l.rule)
	done := l.commit(b)
	id := b.Notifications[0].ID
	l.equal("suppressed by", l.SuppressedBy(id), by)
	want := notify.Suppressed
	if by == uuid.Nil {
		want = notify.Pending
	}
	l.is(id, want)
	l.equal("alerts", len(done.Inserted), 1)
	l.equal("counted as suppressed", done.Suppressed == 1, by != uuid.Nil)
	l.equal("counted as to be sent", done.Notifications[l.webhook] == 1, by == uuid.Nil)
	return id
}

func orders() match.Match { return match.Match{Scope: rules.Scope{Applications: []string{"orders"}}} }

func silenceInForce(l *law) {
	waits := l.suppressed(uuid.Nil)
	id := l.silence("one", 0, orders())
	l.suppressed(id)
	l.is(waits, notify.Pending) // messages written before are not affected
	later := l.silence("another", 2*time.Hour, orders())
	l.Advance(61 * time.Minute)
	l.suppressed(uuid.Nil)
	l.Advance(time.Hour)
	l.suppressed(later)
	l.must(l.EndSilence(later))
	l.suppressed(uuid.Nil)
	l.equal("sent", len(l.claim("a", 8)), 3)
}

func silenceMatches(l *law) {
	for name, c := range map[string]struct {
		m  match.Match
		is bool
	}{
		"the rule":                 {match.Match{Rules: []uuid.UUID{l.rule.ID}}, true},
		"another rule":             {match.Match{Rules: []uuid.UUID{{15: 77}}}, false},
		"the severity":             {match.Match{Severities: []rules.Severity{rules.Info, rules.Warning}}, true},
		"another severity":         {match.Match{Severities: []rules.Severity{rules.Critical}}, false},
		"the application":          {match.Match{Scope: rules.Scope{Applications: []string{"ord*"}}}, true},
		"another application":      {match.Match{Scope: rules.Scope{NotApplications: []string{"orders"}}}, false},
		"the rule and another app": {match.Match{Rules: []uuid.UUID{l.rule.ID}, Scope: rules.Scope{Applications: []string{"billing"}}}, false},
		"no error":                 {match.Match{Filter: rules.Filter{NotErrorTypes: []string{"X"}}}, true},
		"an error":                 {match.Match{Filter: rules.Filter{ErrorMessageContains: "x"}}, false},
		"a label it has not":       {match.Match{Labels: []rules.AttributeMatch{{Key: "team", Op: rules.AttributeEquals, Value: "a"}}}, false},
		"not a label":              {match.Match{Labels: []rules.AttributeMatch{{Key: "team", Not: true, Op: rules.AttributeEquals, Value: "a"}}}, true},
	} {
		id := l.silence(name, 0, c.m)
		if !c.is {
			l.suppressed(uuid.Nil)
		} else {
			l.suppressed(id)
		}
		l.must(l.EndSilence(id))
	}
	l.rule.Labels = map[string]string{"team": "a"}
	_, err := l.UpdateRule(l.rule)
	l.must(err)
	l.suppressed(l.silence("the label", 0, match.Match{Labels: []rules.AttributeMatch{{Key: "team", Op: rules.AttributeEquals, Value: "a"}}}))
}

func silenceHealth(l *law) {
	l.silence("everything", 0, match.Match{Severities: []rules.Severity{rules.Critical, rules.Warning, rules.Info}})
	l.hold("a")
	b := l.batch()
	b.Health = failing(l.rule.ID, "no")
	l.equal("operators are notified", l.commit(b).Notifications[l.operators], 1)
	b = l.batch()
	b.Health = map[uuid.UUID]ruleset.Health{l.rule.ID: {}}
	l.equal("and of the end", l.commit(b).Notifications[l.operators], 1)
	n, err := l.Evaluation.SourceFailed(l.Context(), "a", l.Partition, "no")
	l.must(err)
	l.equal("and of the source", n, 1)
}

func silenceRetried(l *law) {
	id := l.suppressed(l.silence("one", 0, orders()))
	if l.Discard(id) == nil {
		l.Error("what is suppressed was given up")
	}
	l.equal("claimed", len(l.claim("a", 8)), 0)
	l.must(l.Retry(id))
	l.equal("suppressed by", l.SuppressedBy(id), uuid.Nil)
	d := l.one("a")
	l.equal("claimed", d.NotificationID, id)
	l.settle("a", d, delivered())
	l.is(id, notify.Delivered, "DELIVERED")
}

func silenceRecurs(l *law) {
	l.hold("a")
	now := l.now.UTC()
	begins := now.Add(2 * time.Hour)
	id, err := l.CreateSilence(silences.Definition{Name: "every day", Match: orders(), Recurrence: &silences.Recurrence{
		TimeZone: "UTC", Weekdays: rules.Weekdays(), From: begins.Format("15:04"), DurationMinutes: 60,
	}})
	l.must(err)
	l.suppressed(uuid.Nil)
	_, err = l.CreateSilence(silences.Definition{Name: "now", Match: match.Match{Rules: []uuid.UUID{l.rule.ID}}, Recurrence: &silences.Recurrence{
		TimeZone: "UTC", Weekdays: rules.Weekdays(), From: now.Add(-10 * time.Minute).Format("15:04"), DurationMinutes: 60,
	}})
	l.must(err)
	l.hold("a")
	b := l.batch(l.rule)
	l.equal("suppressed within the window", l.commit(b).Suppressed, 1)
	if by := l.SuppressedBy(b.Notifications[0].ID); by == id || by == uuid.Nil {
		l.Errorf("suppressed by %s", by)
	}
}
