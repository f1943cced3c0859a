package simulate

import (
	"time"

	"tocsin/alerts"
	"tocsin/internal/simulate/model"
	"tocsin/rules"
)

// checkResolved holds, for an alert about an exchange that has changed, that Tocsin resolved it only by what its
// rule says now, and notes whom it has to notify.
func (w *world) checkResolved(a *model.Alert, known *alertTruth) {
	r := w.truth.rules[a.RuleID]
	if w.truth.inFailover || r == nil || a.State != alerts.Resolved || a.Resolution == nil || known.state == string(alerts.Resolved) {
		return
	}
	def := &r.present().def
	known.state = string(alerts.Resolved)
	w.checkReason(a, def)
	if def.NotifyOnResolve {
		w.expectEnd(a.ID)
	}
}

// checkReason holds that the reason for which an alert was resolved is one, by the rule as it is now.
func (w *world) checkReason(a *model.Alert, def *rules.Definition) {
	by := def.Resolution
	switch {
	case by == nil:
		w.violate("P4", "alert %s is resolved, and its rule resolves nothing", short(a.ID))
	case a.Resolution.Reason == alerts.ByAge:
		w.stats.Aged++
		if age := a.ResolvedAt.Sub(a.FiredAt); by.AfterSeconds == 0 || age < time.Duration(by.AfterSeconds)*time.Second {
			w.violate("P4", "alert %s is resolved at the age of %v, and its rule says %d s", short(a.ID), age, by.AfterSeconds)
		}
	default:
		w.stats.Proven++
		failed, ok := w.truth.byKey[exchangeKey{a.TenantID, a.Key}], w.truth.byKey[exchangeKey{a.TenantID, a.Resolution.ExecutionID}]
		if by.Evidence == "" || failed == nil || ok == nil || !failed.provenBy(ok) || ok.seenNS > w.Now().UnixNano() {
			w.violate("P4", "alert %s about %s is resolved by %q, which is no evidence", short(a.ID), a.Key, a.Resolution.ExecutionID)
		}
	}
}

// provenBy reports whether another exchange is evidence that the work of a failed one was done later.
func (e *exchange) provenBy(ok *exchange) bool {
	return ok.status == rules.Completed && ok.tenant == e.tenant && ok.app == e.app && ok.customer == e.customer && e.customer != "" && e.customer != longCustomer() &&
		ok.startNS > e.endNS && ok.id != e.id
}

// checkOpen holds, when all faults have been over for minutes, that no alert is open which age or evidence should
// have resolved.
func (w *world) checkOpen() {
	if !w.conf.resolves {
		return
	}
	t := &w.truth
	now := w.Now()
	for _, id := range w.db.AlertIDs() {
		a, _ := w.db.Alert(id)
		r := t.rules[a.RuleID]
		if a.Key == "" || r == nil || a.State == alerts.Resolved {
			continue
		}
		by := r.present().def.Resolution
		if by == nil {
			continue
		}
		if age := w.pgNow().Sub(a.FiredAt); by.AfterSeconds > 0 && age > time.Duration(by.AfterSeconds)*time.Second+3*resolveEvery {
			w.violate("P4", "alert %s is open at the age of %v, and its rule resolves it after %d s", short(id), age, by.AfterSeconds)
		}
		e := t.byKey[exchangeKey{a.TenantID, a.Key}]
		if by.Evidence == "" || e == nil {
			continue
		}
		for _, ok := range t.exchanges {
			if e.provenBy(ok) && w.searched(ok, now) {
				w.violate("P4", "alert %s about %s is open, and %s, which began at %s and was visible at %s, is evidence", short(id), a.Key, ok.id, w.instant(ok.startNS), w.instant(ok.visibleNS))
			}
		}
	}
}

// searched reports whether evidence must have been found by an instant: it became visible soon enough, has been
// visible for a while, and is not too old.
func (w *world) searched(ok *exchange, now time.Time) bool {
	const soon, late, longest = 15 * time.Minute, 3 * resolveEvery, 20 * time.Hour
	jumped := w.truth.skewMost.Nanoseconds()
	return ok.visibleNS-ok.startNS+2*jumped < soon.Nanoseconds() && ok.visibleNS < now.Add(-late).UnixNano() && ok.startNS > now.Add(-longest).UnixNano()
}
