package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/internal/simulate/model"
	"tocsin/notify"
)

// BreachError is a promise that was broken.
type BreachError struct{ Promise, What string }

func (v *BreachError) Error() string { return v.Promise + ": " + v.What }

// check holds the store to the promises, after each step.
func (w *world) check() {
	t := &w.truth
	t.see()
	t.endSilences()
	touched, messages := w.db.Touched()
	for _, id := range touched {
		w.checkAlert(id)
	}
	for _, id := range messages {
		w.checkMessage(id)
	}
	if w.conf.quiet && len(messages) > 0 {
		w.checkHeld(messages)
	}
	w.checkCoverage()
	w.checkReplays()
}

// checkAlert holds P1, P2 and P4 for an alert that has changed.
func (w *world) checkAlert(id uuid.UUID) {
	t := &w.truth
	a, there := w.db.Alert(id)
	known := t.alerts[id]
	if !there {
		if known != nil && t.inFailover {
			known.routed, known.stepOf, known.snooze, known.notifiedAt, known.events, known.notified = nil, nil, nil, time.Time{}, nil, nil // where it comes back, it is routed again
		}
		if known != nil && known.exists {
			known.exists = false
			w.gone(id, known)
		}
		return
	}
	if known == nil {
		known = &alertTruth{state: string(alerts.Firing)}
		t.alerts[id] = known
	}
	fresh := !known.exists
	if fresh && !t.inFailover && !a.Window {
		known.state = string(alerts.Firing)
	}
	known.exists = true
	if t.inFailover {
		known.state, known.reminders = string(a.State), a.Reminders
		known.cleared = known.cleared && a.State == alerts.Resolved && !a.Held
	}
	if a.Window {
		w.checkWindow(&a, known)
		w.checkEvents(&a, known)
		w.checkEscalation(&a, known)
		w.checkSnooze(&a, known)
		return
	}
	if a.Key == "" {
		w.checkHealthNotified(&a)
		w.checkEvents(&a, known)
		return
	}
	if fresh {
		w.checkRaised(&a, known)
	}
	w.checkNotified(&a, known)
	w.checkEscalation(&a, known)
	w.checkSnooze(&a, known)
	w.checkResolved(&a, known)
	w.checkEvents(&a, known)
	if string(a.State) != known.state {
		w.violate("P4", "alert %s is %s, and what people did leaves it %s", short(id), a.State, known.state)
	}
}

// checkRaised holds P1 for a new alert: it is about an exchange that its rule wants, the
// only one, and has the id that it had before if a failover took it away.
func (w *world) checkRaised(a *model.Alert, known *alertTruth) {
	t := &w.truth
	w.stats.Alerts++
	e := t.byKey[exchangeKey{a.TenantID, a.Key}]
	r := t.rules[a.RuleID]
	if e == nil || r == nil {
		w.violate("P1", "alert %s of rule %s is about %q, which there is not", short(a.ID), short(a.RuleID), a.Key)
		return
	}
	t.maybe(r, e)
	p := t.pairs[pairKey{a.RuleID, a.Key}]
	replayed, quiet := t.replayed(r, e)
	known.onlyReplays = p == nil && replayed > 0
	known.mayBeQuiet, known.isQuiet = replayed > 0 && quiet > 0 && (p == nil || !p.must), p == nil && quiet > 0 && quiet == replayed
	if p == nil && replayed > 0 {
		p = &pair{rule: r, e: e}
		t.pairs[pairKey{a.RuleID, a.Key}] = p
	}
	switch {
	case p == nil:
		w.violate("P1", "rule %s alerts %s, which it does not want", short(a.RuleID), a.Key)
		return
	case p.deleted && t.lostCommits.IsZero():
		w.violate("P1", "rule %s alerts %s again after retention deleted its alert", short(a.RuleID), a.Key)
	case p.alert != uuid.Nil && p.alert != a.ID:
		if other := t.alerts[p.alert]; other != nil && other.exists {
			w.violate("P1", "rule %s has two alerts about %s: %s and %s", short(a.RuleID), a.Key, short(p.alert), short(a.ID))
		} else {
			w.violate("P1", "the alert of rule %s about %s came back as %s, and was %s", short(a.RuleID), a.Key, short(a.ID), short(p.alert))
		}
	}
	p.alert, known.pair = a.ID, p
}

// gone holds that an alert disappears by a failover or by retention alone.
func (w *world) gone(id uuid.UUID, known *alertTruth) {
	if w.truth.inFailover {
		return
	}
	if known.state != string(alerts.Resolved) && known.pair != nil {
		w.violate("P4", "alert %s, which is %s, is deleted", short(id), known.state)
	}
	if known.pair != nil {
		known.pair.deleted, known.pair.must = true, false
	}
}

// checkNotified holds P2: one notification for each webhook that the rule was bound to, or that
// the routing policy led to.
func (w *world) checkNotified(a *model.Alert, known *alertTruth) {
	r := w.truth.rules[a.RuleID]
	if r == nil {
		return
	}
	entry := r.version(a.RuleVersion)
	if entry == nil {
		return // of a version that a failover took back
	}
	list := w.db.NotificationsOf(a.ID)
	count := map[uuid.UUID]int{}
	for i := range list {
		if n := &list[i]; n.Reason == notify.ReasonFired {
			count[n.WebhookID]++
			w.checkNotificationID(n)
		}
	}
	for _, webhook := range w.routedTo(a, known, &entry.def, true) {
		if known.isQuiet && count[webhook] > 0 {
			w.violate("P2", "alert %s has notifications for webhook %s, and only replays without messages raise it", short(a.ID), short(webhook))
		} else if count[webhook] != 1 && (!known.mayBeQuiet || count[webhook] != 0) {
			w.violate("P2", "alert %s has %d notifications for webhook %s", short(a.ID), count[webhook], short(webhook))
		}
		delete(count, webhook)
	}
	if len(count) > 0 {
		w.violate("P2", "alert %s has notifications for a webhook that neither its rule nor its route names", short(a.ID))
	}
}

func (w *world) checkNotificationID(n *model.Notification) {
	key := fmt.Sprint(n.AlertID, n.WebhookID, n.Reason, n.Generation)
	if was, known := w.truth.notified[key]; known && was != n.ID {
		w.violate("P2", "the notification of alert %s came back as %s, and was %s", short(n.AlertID), short(n.ID), short(was))
	}
	w.truth.notified[key] = n.ID
}

// checkHealthNotified holds that operators are notified once.
func (w *world) checkHealthNotified(a *model.Alert) {
	seen := map[string]bool{}
	list := w.db.NotificationsOf(a.ID)
	for i := range list {
		key := fmt.Sprint(list[i].WebhookID, list[i].Reason, list[i].About)
		if seen[key] {
			w.violate("P2", "operators are notified twice about alert %s", short(a.ID))
		}
		seen[key] = true
	}
}

// checkCoverage holds the invariant behind P1: what must be alerted is alerted, or what is
// stored makes some process evaluate it later.
func (w *world) checkCoverage() {
	t := &w.truth
	if len(t.outstanding) == 0 {
		return
	}
	t.outstanding = slices.DeleteFunc(t.outstanding, func(p *pair) bool {
		_, alerted := w.db.AlertOf(p.rule.id, p.e.id)
		if alerted || !p.must {
			p.open = false
			return true
		}
		if why := w.uncovered(p); why != "" {
			w.violate("P1", "rule %s never alerts %s, which began at %s and ended at %s: %s", short(p.rule.id), p.e.id, w.instant(p.e.startNS), w.instant(p.e.endNS), why)
		}
		return false
	})
}

func (w *world) instant(ns int64) string {
	at := time.Unix(0, ns).Sub(w.truth.began)
	return fmt.Sprintf("%s.%03d", clockOf(at), at.Milliseconds()%1000)
}

// uncovered returns why nothing that is stored makes a process evaluate an exchange; "" if something does.
func (w *world) uncovered(p *pair) string {
	c := w.db.Checkpoint(p.rule.partition)
	start := p.e.startNS
	if b, own := w.db.Backfill(p.rule.id); own {
		at := b.At
		behind := start > at.StartTimeNS || start == at.StartTimeNS && p.e.id > at.ExecutionID
		if behind && (b.Until == nil || b.Failing || start <= b.Until.StartTimeNS) {
			return ""
		}
		if b.Failing {
			return fmt.Sprintf("the rule fails, and goes on from %s", w.instant(at.StartTimeNS))
		}
	}
	if c.Cursor == nil || start > c.Cursor.StartTimeNS || start == c.Cursor.StartTimeNS && p.e.id > c.Cursor.ExecutionID {
		return ""
	}
	base := c.Cursor.StartTimeNS
	if c.Backfill != nil {
		base = min(base, c.Backfill.CursorNS)
	}
	if start >= base-reach(&p.rule.present().def) {
		return ""
	}
	return fmt.Sprintf("the cursor is at %s, the look-back counts from %s", w.instant(c.Cursor.StartTimeNS), w.instant(base))
}

// checkArming holds that a rule is armed no later than by the producers' clock, which
// ClickHouse's stands for.
func (t *truth) checkArming(r *ruleTruth, e *ruleEntry) {
	measured, there := t.measured[r.partition]
	if !e.def.Enabled || !e.arms && !e.edits || !there || !measured.After(t.clockJumped) || !measured.After(t.lostCommits) {
		return
	}
	// The measure is off by the time between two readings at most.
	const off = 15 * time.Second
	latest := t.w.Now().Add(t.w.chSkew + off).UnixNano()
	for i := range r.entries[:len(r.entries)-1] {
		latest = max(latest, r.entries[i].armedNS) // instants of a rule ascend
	}
	if e.armedNS > latest {
		t.w.violate("P1", "rule %s is armed at %s, later than it is", short(r.id), t.w.instant(e.armedNS))
	}
}

// checkAll holds everything at the end, when all faults are over: what must be alerted is,
// and nothing is left to be delivered.
func (w *world) checkAll() {
	t := &w.truth
	for _, e := range t.exchanges {
		for _, id := range t.order {
			p := t.pairs[pairKey{id, e.id}]
			if p == nil || !p.must {
				continue
			}
			if _, alerted := w.db.AlertOf(id, e.id); !alerted {
				w.violate("P1", "rule %s has not alerted %s, which began at %s, ended at %s and was visible at %s", short(id), e.id,
					w.instant(e.startNS), w.instant(e.endNS), w.instant(e.visibleNS))
			}
		}
	}
	for _, p := range t.replays {
		if row, _ := w.db.Replay(p.id); row.State == model.ReplayRunning {
			w.violate("P1", "replay %s of rule %s never ends: it is at %s", short(p.id), short(p.rule), w.instant(row.At.StartTimeNS))
		}
	}
	for _, id := range w.db.Messages() {
		if m, _ := w.db.Message(id); m.Row != nil && w.db.Webhook(m.WebhookID).Enabled {
			w.violate("P3", "message %s waits for ever: attempt %d, due %s", short(id), m.Row.Attempts, w.instant(m.Row.DueAt.UnixNano()))
		}
	}
	w.checkEnded()
	for _, id := range w.db.AlertIDs() {
		w.checkAlert(id)
	}
	for _, id := range w.db.Messages() {
		w.checkMessage(id)
	}
}
