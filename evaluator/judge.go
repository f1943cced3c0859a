package evaluator

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/alerts/routing"
	"tocsin/cursor"
	"tocsin/evaluator/ruleset"
	"tocsin/evaluator/window"
	"tocsin/internal/fault"
	"tocsin/notify"
	"tocsin/rules"
)

// findings are the alerts that a page raises, with their notifications, or what becomes
// of those of window rules.
type findings struct {
	instances     []alerts.Instance
	notifications []notify.Notification
	changes       []window.Change
	// problems are those of rules whose texts are a fallback.
	problems map[uuid.UUID]string
	ids      map[uuid.UUID]bool
	// panicked are rules that panicked over an exchange.
	panicked map[uuid.UUID]bool
}

// newFindings returns the findings of a page, before anything is found.
func newFindings() findings {
	return findings{problems: map[uuid.UUID]string{}, ids: map[uuid.UUID]bool{}, panicked: map[uuid.UUID]bool{}}
}

// mostRaised is how many alerts a commit writes, and those of one exchange more: many rules
// may want each exchange of a page.
const mostRaised = 5000

// full reports whether no more exchanges of a page are to be evaluated before a commit. No
// position is cut in two.
func (f *findings) full(page []rules.Exchange, next int) bool {
	return len(f.instances) >= mostRaised && page[next].Position() != page[next-1].Position()
}

// judge returns what a page raises, by all rules of the partition that do not fail, and how
// many of its exchanges it has evaluated. What is known to have its alert is left out.
func (p *pass) judge(page []rules.Exchange) (f findings, judged int) {
	f = newFindings()
	for i := range page {
		if f.full(page, i) {
			return f, i
		}
		e := &page[i]
		t := p.rules.Of(e.TenantID)
		if t == nil {
			continue
		}
		for r := range t.Candidates(e) {
			if !r.Failing && r.Reaches(e.StartTimeNS, p.backlog.BaseNS()) {
				p.wanted(&f, r, e, e.StartTimeNS < p.backlog.BaseNS())
			}
		}
	}
	return f, len(page)
}

// judgeFor is judge for rules that read a page for themselves.
func (p *pass) judgeFor(list []*ruleset.Rule, page []rules.Exchange) (f findings, judged int) {
	f = newFindings()
	for i := range page {
		if f.full(page, i) {
			return f, i
		}
		e := &page[i]
		for _, r := range list {
			if r.TenantID == e.TenantID && e.Position().After(r.Backfill.At) && !f.panicked[r.ID] {
				// What the rule reads for itself is behind the partition's cursor, not its own.
				p.wanted(&f, r, e, e.StartTimeNS < r.ArmedSinceNS)
			}
		}
	}
	return f, len(page)
}

// wanted adds the alert of a rule about an exchange that it wants. A rule that panics over one fails,
// as one does of which the database refuses the alert, and the others go on.
func (p *pass) wanted(f *findings, r *ruleset.Rule, e *rules.Exchange, late bool) {
	err := p.guarded(e, func() {
		if r.Wants(e) {
			p.raise(f, r, e, late)
		}
	})
	if err == nil {
		return
	}
	f.panicked[r.ID] = true
	p.fail(r, err, &cursor.Range{FromNS: e.StartTimeNS, ToNS: e.StartTimeNS + 1})
}

// guarded does something with an exchange. A panic is an error.
func (p *pass) guarded(e *rules.Exchange, do func()) (err error) {
	if err = fault.Guard(func() error { do(); return nil }); err != nil {
		err = fmt.Errorf("evaluate the exchange %q: %w", e.ExecutionID, err)
		p.Logger.Error("a rule panicked on an exchange", slog.Any("error", err), fault.Stack(err))
	}
	return err
}

// raise adds the alert of a rule about an exchange, unless it is known to exist. It is late
// where the exchange was found behind a cursor.
func (p *pass) raise(f *findings, r *ruleset.Rule, e *rules.Exchange, late bool) {
	id := alerts.ID(r.ID, e)
	if p.backlog.HasRaised(id) || f.ids[id] {
		return // its row is stored twice, or its second is evaluated again
	}
	f.ids[id] = true
	title, message, problem := p.Texts.Texts(&r.Rule, e)
	if problem != nil {
		f.problems[r.ID] = problem.Error()
	}
	a := alerts.Instance{
		ID: id, TenantID: r.TenantID, RuleID: r.ID, RuleVersion: r.Version, RuleName: r.Name,
		Severity: r.Severity, State: alerts.Firing, Title: title, Message: message, Exchange: e.Clean(),
		Late: late,
	}
	webhooks := routing.Recipients(&r.Rule, r.Router, &a)
	f.instances = append(f.instances, a)
	for _, webhook := range webhooks {
		f.notifications = append(f.notifications, notify.Notification{
			ID: notify.ID(id, webhook, notify.ReasonFired, 0), TenantID: r.TenantID, AlertID: id, RuleID: r.ID,
			WebhookID: webhook, Reason: notify.ReasonFired, Status: notify.Pending,
		})
	}
}

// of returns the findings of some rules.
func (f *findings) of(ids []uuid.UUID) findings {
	own := findings{problems: f.problems, panicked: f.panicked}
	for i := range f.instances {
		if slices.Contains(ids, f.instances[i].RuleID) {
			own.instances = append(own.instances, f.instances[i])
		}
	}
	for i := range f.notifications {
		if slices.Contains(ids, f.notifications[i].RuleID) {
			own.notifications = append(own.notifications, f.notifications[i])
		}
	}
	for i := range f.changes {
		if slices.Contains(ids, f.changes[i].Instance.RuleID) {
			own.changes = append(own.changes, f.changes[i])
		}
	}
	return own
}

// rangeOf returns the range of the exchanges about which a rule found anything; nil is none.
func (f *findings) rangeOf(rule uuid.UUID) (found *cursor.Range) {
	for i := range f.instances {
		if a := &f.instances[i]; a.RuleID == rule {
			if at := a.Exchange.StartTimeNS; found == nil {
				found = &cursor.Range{FromNS: at, ToNS: at + 1}
			} else {
				found.FromNS, found.ToNS = min(found.FromNS, at), max(found.ToNS, at+1)
			}
		}
	}
	return found
}

// finders returns the rules that found anything.
func (f *findings) finders() []uuid.UUID {
	found := map[uuid.UUID]bool{}
	for i := range f.instances {
		found[f.instances[i].RuleID] = true
	}
	for i := range f.changes {
		found[f.changes[i].Instance.RuleID] = true
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
}
