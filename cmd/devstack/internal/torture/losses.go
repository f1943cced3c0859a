//go:build unix

package torture

import "slices"

// A failover that loses commits takes back alerts, and what was known about messages. Each alert of an exchange must be
// there again, with the id that it had, and so must its messages: then a receiver knows a repeat by its webhook-id. A
// digest, and the alert of a window rule, depend on the moment at which they are made. They may come under other ids.

// checkLosses holds alerts that came back to the ids that they had.
func (w *world) checkLosses(report *Report, t *tables) {
	ids := map[raised]string{}
	for _, a := range t.alerts {
		if a.About == anExchange {
			ids[raised{a.RuleID, a.Correlation}] = a.ID
		}
	}
	for _, l := range w.truth.losses {
		report.Lost += len(l.alerts)
		for _, a := range l.alerts {
			// That one is missing at all is found where all are.
			if id, there := ids[raised{a.RuleID, a.Correlation}]; there && id != a.AlertID {
				report.find(renamed, "alert %s of rule %s for %s is %s now", a.AlertID, a.RuleID, a.Correlation, id)
			}
		}
	}
}

// forgotten counts requests of which the database may know nothing, because a failover lost that they were made, and
// those of them that the receiver accepted.
func (w *world) forgotten(requests []request) (all, accepted int) {
	for _, r := range requests {
		if !w.truth.lostAt(r.at.UnixNano()) {
			continue
		}
		all++
		if r.accepted {
			accepted++
		}
	}
	return all, accepted
}

// lostAt says whether a failover lost what was begun about then.
func (t *truth) lostAt(ns int64) bool {
	return slices.ContainsFunc(t.losses, func(l loss) bool { return !l.synchronous && l.when.fromNS <= ns && ns <= l.when.toNS })
}

// takenBack says whether requests are those of a notification that a failover took away, and that need not have come back
// under its id.
func (w *world) takenBack(t *tables, requests []request) bool {
	if all, _ := w.forgotten(requests); all < len(requests) {
		return false
	}
	return !slices.ContainsFunc(requests, func(r request) bool {
		return r.read && !r.digest && r.correlation != "" && !w.mayBeGone(t, r)
	})
}

// mayBeGone says whether the message of an alert of an exchange need not have come back: the alert need not, or a later
// version of its rule, which raised it again, is not bound to the webhook.
func (w *world) mayBeGone(t *tables, r request) bool {
	at := slices.IndexFunc(w.truth.lives, func(l *life) bool { return l.id == r.ruleID })
	if at < 0 {
		return false
	}
	l := w.truth.lives[at]
	for i := range t.alerts {
		if a := &t.alerts[i]; a.RuleID == r.ruleID && a.Correlation == r.correlation {
			return !slices.Contains(l.hooksAt(a.RuleVersion), r.hook)
		}
	}
	number := slices.IndexFunc(w.truth.exchanges, func(e exchange) bool { return e.correlation() == r.correlation })
	return number >= 0 && w.truth.expected(l, &w.truth.exchanges[number], w.truth.seen[number]) != one
}
