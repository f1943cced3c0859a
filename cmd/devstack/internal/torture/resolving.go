//go:build unix

package torture

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// In the plain form one rule resolves its alerts by evidence, and another one by age. A job, which several exchanges
// share, is an attribute by which the evidence is found.

func (f Form) resolves() bool { return f == Plain }

const (
	jobAttribute = "job"
	// noJob is the number of jobs, and that of exchanges without one.
	noJob = 5
	// agedAfter is the least age that a rule can name.
	agedAfter = time.Minute
	// resolveWithin is how long an alert may be older than that while nothing is broken.
	resolveWithin = 15 * time.Second
)

// ending is by what a rule resolves its alerts.
type ending struct {
	evidence bool
	after    time.Duration
	// notifies says that webhooks that were notified of an alert are notified of its end.
	notifies bool
}

func resolvingRules() []rule {
	return []rule{
		{
			name: ruleMended, hooks: []string{"b", "c"}, lookBackSeconds: hour, intervalSeconds: 1,
			condition: condition{applications: []string{"orders*", "crm"}}, ending: ending{evidence: true, notifies: true},
		},
		{
			name: ruleAged, hooks: []string{"a"}, lookBackSeconds: hour, intervalSeconds: 1,
			condition: condition{environments: []string{"test"}}, ending: ending{after: agedAfter},
		},
	}
}

// define adds to a definition what resolves its alerts.
func (e *ending) define(definition map[string]any) {
	resolution := map[string]any{}
	if e.evidence {
		resolution["evidence"], resolution["attribute"] = "ATTRIBUTE", jobAttribute
	}
	if e.after > 0 {
		resolution["afterSeconds"] = int(e.after.Seconds())
	}
	if len(resolution) > 0 {
		definition["resolution"], definition["notifyOnResolve"] = resolution, e.notifies
	}
}

// job is the value of the attribute of an exchange; empty if it has none.
func job(number int) string {
	if number%noJob == 0 {
		return ""
	}
	return fmt.Sprint("job ", number%noJob)
}

// work is what a failed exchange and its evidence have in common.
type work struct{ environment, application, route, job string }

func (e *exchange) work() work {
	return work{e.environment, e.application, e.route, e.attributes[jobAttribute]}
}

// proves reports whether an exchange is evidence that the work of a failed one was done later.
func (e *exchange) proves(failed *exchange) bool {
	return !e.failed && e.work() == failed.work() && e.attributes[jobAttribute] != "" && e.startNS > max(failed.startNS, failed.endNS)
}

// lastDone returns when the last exchange of each work began that completed and was visible before an instant.
func (t *truth) lastDone(beforeNS int64) map[work]int64 {
	last := map[work]int64{}
	for i := range t.exchanges {
		e, seen := &t.exchanges[i], t.seen[i]
		if !e.failed && e.attributes[jobAttribute] != "" && seen != (span{}) && seen.toNS < beforeNS {
			last[e.work()] = max(last[e.work()], e.startNS)
		}
	}
	return last
}

// exchangeOf returns the exchange that an alert is about.
func (t *truth) exchangeOf(a *alert) *exchange {
	var number int
	if _, err := fmt.Sscanf(a.Correlation, "x-%d", &number); err != nil || number < 0 || number >= len(t.exchanges) {
		return nil
	}
	return &t.exchanges[number]
}

// checkState holds the state of an alert about an exchange: as a person left it, or resolved by what its rule says.
func (w *world) checkState(report *Report, l *life, a *alert, done map[work]int64) {
	e := w.truth.exchangeOf(a)
	if l == nil || e == nil || l.rule.ending == (ending{}) {
		if want := w.truth.state(a.ID); a.State != want {
			report.find(altered, "alert %s is %s, and a person left it %s", a.ID, a.State, want)
		}
		return
	}
	end := l.rule.ending
	provable := end.evidence && done[e.work()] > max(e.startNS, e.endNS)
	switch {
	case a.State != aResolution && provable:
		report.find(altered, "alert %s about %s is %s, and an exchange that completed later is evidence", a.ID, a.Correlation, a.State)
	case a.State != aResolution && end.after > 0 && !w.rested.IsZero() && a.FiredAt.Add(end.after+2*resolveWithin).Before(w.rested):
		report.find(altered, "alert %s is %s, and fired %v before the end", a.ID, a.State, w.rested.Sub(a.FiredAt))
	case a.State != aResolution:
	case a.ResolvedAt == nil:
		report.find(altered, "alert %s is resolved at no time", a.ID)
	case a.ResolvedFor == "AGE" && end.after > 0 && a.ResolvedAt.Sub(a.FiredAt) >= end.after:
		report.Aged++
	case a.ResolvedFor == "EVIDENCE" && end.evidence && w.truth.isEvidence(e, a):
		report.Proven++
	default:
		report.find(altered, "alert %s about %s is resolved after %v by %q that began at %d, which is no reason", a.ID, a.Correlation, a.ResolvedAt.Sub(a.FiredAt), a.ResolvedFor, a.EvidenceNS)
	}
}

// isEvidence reports whether what an alert names as evidence is one, and can have been visible when the alert was resolved.
func (t *truth) isEvidence(failed *exchange, a *alert) bool {
	for i := range t.exchanges {
		if e := &t.exchanges[i]; e.startNS == a.EvidenceNS && e.proves(failed) && t.seen[i] != (span{}) && t.seen[i].fromNS <= a.ResolvedAt.UnixNano() {
			return true
		}
	}
	return false
}

// resolved reports whether all alerts are resolved that age or evidence resolves.
func (w *world) resolved(ctx context.Context, conn *pgx.Conn) (bool, error) {
	if !w.options.Form.resolves() {
		return true, nil
	}
	open, err := read[struct {
		RuleID, Correlation string
		FiredAt, Now        time.Time
	}](ctx, conn, `SELECT rule_id::text, coalesce(exchange->>'correlationId', ''), fired_at, now() FROM alert JOIN rule USING (rule_id)
		WHERE state <> 'RESOLVED' AND execution_id IS NOT NULL AND rule.resolution <> '{}'`)
	if err != nil {
		return false, err
	}
	w.truth.mu.Lock()
	defer w.truth.mu.Unlock()
	done := w.truth.lastDone(time.Now().UnixNano())
	for _, a := range open {
		at := slices.IndexFunc(w.truth.lives, func(l *life) bool { return l.id == a.RuleID })
		e := w.truth.exchangeOf(&alert{Correlation: a.Correlation})
		if at < 0 || e == nil {
			continue
		}
		end := w.truth.lives[at].rule.ending
		if end.evidence && done[e.work()] > max(e.startNS, e.endNS) || end.after > 0 && a.Now.Sub(a.FiredAt) > end.after+resolveWithin {
			return false, nil
		}
	}
	return true, nil
}
