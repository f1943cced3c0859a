//go:build unix

package torture

import "slices"

// A failover that loses commits removes alerts, and what was stored about messages. Each alert of
// an exchange must exist again, with the id that it had, and so must its messages: then a receiver
// recognises a repetition by its webhook-id. A digest, and the alert of a window rule, depend on
// the time at which they are made. They may have other ids afterwards.

// checkLosses checks that alerts that exist again have the ids that they had.
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
			// That one is missing altogether is found by the check of all alerts.
			if id, there := ids[raised{a.RuleID, a.Correlation}]; there && id != a.AlertID {
				report.find(renamed, "alert %s of rule %s for %s is %s now", a.AlertID, a.RuleID, a.Correlation, id)
			}
		}
	}
}

// forgotten counts requests that the database may not contain, because a failover lost their
// record, and those of them that the receiver accepted.
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

// lostAt reports whether a failover lost what was begun at about that time.
func (t *truth) lostAt(ns int64) bool {
	return slices.ContainsFunc(t.losses, func(l loss) bool { return !l.synchronous && l.when.fromNS <= ns && ns <= l.when.toNS })
}

// takenBack reports whether requests belong to a notification that a failover removed and that need
// not exist again under its id.
func (w *world) takenBack(t *tables, requests []request) bool {
	if all, _ := w.forgotten(requests); all < len(requests) {
		return false
	}
	return !slices.ContainsFunc(requests, func(r request) bool {
		return r.read && !r.digest && r.correlation != "" && !w.mayBeGone(t, r)
	})
}

// mayBeGone reports whether the message of an alert of an exchange need not exist again: either the
// alert need not, or a later version of its rule, which raised it again, does not have the webhook.
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
