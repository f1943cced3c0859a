package simulate

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/simulate/model"
	"tocsin/notify"
	"tocsin/notify/dispatch"
)

// checkMessage holds P3 for a message that has changed: it is in one place, its attempts
// are recorded, and what was delivered is not attempted again.
func (w *world) checkMessage(id uuid.UUID) {
	t := &w.truth
	m, there := w.db.Message(id)
	known := t.messages[id]
	if known == nil {
		known = &messageTruth{delivered: -1, begun: map[beginning]time.Time{}}
		t.messages[id] = known
	}
	if !there {
		if known.exists && known.waiting && !t.inFailover {
			w.violate("P3", "message %s is lost while it is to be delivered", short(id))
		}
		known.exists, known.waiting, known.delivered, known.discarded = false, false, -1, false
		delete(t.lasting, id)
		return
	}
	known.fresh = !known.exists && !t.inFailover
	if known.fresh {
		if m.Reason == notify.ReasonAcknowledged || m.Reason == notify.ReasonReopened {
			w.stats.EventMessages++
		}
		w.checkSilenced(&m)
		w.checkHours(&m)
	}
	w.checkListed(&m, known.fresh)
	known.exists = true
	places := 0
	for _, in := range []bool{m.Row != nil, m.Settlement != nil, m.Digest != uuid.Nil} {
		if in {
			places++
		}
	}
	if places != 1 {
		w.violate("P3", "message %s is in %d places: outbox %v, settled %v, in a digest %v", short(id), places, m.Row != nil, m.Settlement != nil, m.Digest != uuid.Nil)
	}
	known.waiting, known.generation = m.Row != nil, m.Generation
	if t.inFailover {
		known.delivered = -1
		known.discarded = known.discarded && m.Settlement != nil && m.Settlement.Status == notify.Discarded
	}
	if o := m.Row; o != nil {
		if known.delivered >= 0 && o.Generation <= known.delivered {
			w.violate("P3", "message %s is to be delivered again, although it is stored as delivered", short(id))
		}
		if as := (beginning{o.Attempts, o.BegunAt.UnixNano()}); o.Token != 0 && !o.BegunAt.IsZero() && known.begun[as].IsZero() {
			known.begun[as] = w.Now()
		}
	}
	if s := m.Settlement; s != nil && s.Status == notify.Delivered {
		known.delivered = known.generation
		if !w.hasArrived(id) {
			w.violate("P3", "message %s is stored as delivered, and no receiver said so", short(id))
		}
	}
	settled := known.settled
	if known.settled = ""; m.Settlement != nil {
		known.settled = m.Settlement.Status
	}
	if s := m.Settlement; known.settled == notify.Discarded && settled != known.settled && !known.discarded && !t.inFailover && t.quieted[id] == nil {
		a, _ := w.db.Alert(m.AlertID)
		since, looked := a.LookedAfter()
		isNotified, _ := w.wasNotified(m.AlertID, m.WebhookID)
		switch {
		case m.Reason == notify.ReasonEscalated && looked && s.SettledAt.Sub(since) >= undoable:
		case w.tooOld(&m):
			w.stats.Expired++
		case m.Reason.IsEvent() && !isNotified:
			w.stats.Unheard++
		default:
			w.violate("P3", "message %s (%s) to webhook %s about alert %s is given up by nobody", short(id), m.Reason, short(m.WebhookID), short(m.AlertID))
		}
	}
	w.checkRecorded(id)
}

// checkSilenced holds that a message that has just been written is suppressed where a silence is
// in force that is about its alert, by that silence, and nowhere else.
func (w *world) checkSilenced(m *model.Message) {
	by := m.SuppressedBy()
	a, there := w.db.Alert(m.AlertID)
	e := w.truth.byKey[exchangeKey{a.TenantID, a.Key}]
	if !announces(m.Reason) && !m.Reason.IsEvent() || !there || e == nil && !a.Window {
		if by != uuid.Nil {
			w.violate("P3", "message %s is suppressed by silence %s, and is about no exchange", short(m.ID), short(by))
		}
		return
	}
	at := m.CreatedAt.UnixNano()
	suppresses := func(s silenceTruth) bool {
		if a.Window {
			return s.suppressesCount(&a, &w.truth.rules[a.RuleID].present().def, at)
		}
		return s.suppresses(e, at) && a.Severity == silencedSeverity
	}
	want := false
	for _, s := range w.truth.silences {
		want = want || suppresses(s)
	}
	if _, last := w.hasHeard(m.AlertID, m.WebhookID, m.ID); m.Reason.IsEvent() && last != uuid.Nil && !want {
		if by != last {
			w.violate("P3", "message %s is about an event of alert %s, of which silence %s kept everything", short(m.ID), short(m.AlertID), short(last))
		}
		return
	}
	if s, known := w.truth.silences[by]; by != uuid.Nil && (!known || !suppresses(s)) {
		w.violate("P3", "message %s about alert %s is suppressed by silence %s, which is not about it at %s", short(m.ID), short(a.ID), short(by), w.instant(at))
	} else if want && by == uuid.Nil {
		w.violate("P3", "message %s about alert %s is written at %s to be sent, although it is silenced", short(m.ID), short(a.ID), w.instant(at))
	}
	switch {
	case by == uuid.Nil:
	case a.Window:
		w.stats.SuppressedCounts++
		fallthrough
	default:
		w.stats.Suppressed++
	}
}

// wasNotified reports whether a receiver got a message that says that an alert fires, by itself or in a digest, and no failover has taken
// the record of that away; and whether it may have got one, because it is not known what became of an attempt.
func (w *world) wasNotified(alert, webhook uuid.UUID) (is, maybe bool) {
	for _, n := range w.db.NotificationsOf(alert) {
		if n.WebhookID != webhook || n.About != uuid.Nil || n.Reason.IsEvent() {
			continue
		}
		id := n.ID
		if m, _ := w.db.Message(id); m.Digest != uuid.Nil {
			id = m.Digest
		}
		for _, s := range w.truth.sent[id.String()] {
			is, maybe = is || s.claimed.After(w.truth.lostCommits), true
		}
		maybe = maybe || w.db.MayHaveLeft(id)
	}
	return is, maybe
}

// checkEventRecipient holds that what happened to an alert is sent only to a webhook that may have been notified that it fires, unless a person sends it.
func (w *world) checkEventRecipient(id uuid.UUID) {
	m, there := w.db.Message(id)
	if !there || !m.Reason.IsEvent() || m.Generation > 0 {
		return
	}
	if _, maybe := w.wasNotified(m.AlertID, m.WebhookID); !maybe {
		w.violate("P2", "message %s (%s) is sent to webhook %s, which was not notified that alert %s fires", short(id), m.Reason, short(m.WebhookID), short(m.AlertID))
	}
}

// hasHeard reports whether a webhook has heard of an alert, or will hear, by messages other than one: whether any of
// them was not given up before it was attempted. If silences suppressed all of these, it also returns the last silence.
func (w *world) hasHeard(alert, webhook, other uuid.UUID) (heard bool, last uuid.UUID) {
	all := true
	for _, n := range w.db.NotificationsOf(alert) {
		if n.WebhookID != webhook || n.About != uuid.Nil || n.ID == other {
			continue
		}
		m, _ := w.db.Message(n.ID)
		if w.givenUp(&m) {
			continue
		}
		heard, last = true, m.SuppressedBy()
		all = all && last != uuid.Nil
	}
	if !all {
		last = uuid.Nil
	}
	return heard, last
}

// givenUp reports whether a message was given up before it was attempted, and not by a person.
func (w *world) givenUp(m *model.Message) bool {
	s := m.Settlement
	return s != nil && s.Status == notify.Discarded && s.Attempt.Number == 1 && !w.truth.messages[m.ID].discarded
}

// hasArrived reports whether a receiver has said that it took a message.
func (w *world) hasArrived(id uuid.UUID) bool {
	for _, s := range w.truth.sent[id.String()] {
		if s.answered {
			return true
		}
	}
	return false
}

// checkRecorded holds that each attempt that was sent is on record, unless a failover took
// it away or retention deleted the message.
func (w *world) checkRecorded(id uuid.UUID) {
	for _, s := range w.truth.sent[id.String()] {
		if s.claimed.After(w.truth.lostCommits) && !w.db.HasAttempt(id, s.attempt) {
			w.violate("P3", "attempt %d of message %s was sent, and is not on record", s.attempt, short(id))
		}
	}
}

// sends holds P3 for a request that leaves.
func (t *truth) sends(s *sending) {
	w := t.w
	w.stats.Requests++
	s.at = w.Now()
	known := t.messages[s.id]
	begun, recorded := time.Time{}, false
	if known != nil {
		begun = known.begun[beginning{s.attempt, s.begunAt.UnixNano()}]
		recorded = !begun.IsZero()
	}
	s.claimed = begun
	switch {
	case !recorded:
		w.violate("P3", "attempt %d of message %s is sent before it is on record", s.attempt, short(s.id))
	case w.inside != nil && w.inside.kind != "send":
		w.violate("P5", "message %s is sent within a transaction", short(s.id))
	}
	if h := t.quieted[s.id]; h != nil && begun.After(t.lostCommits) {
		w.violate("P2", "message %s is sent while quiet hours hold it until %s", short(s.id), w.instant(h.until.UnixNano()))
	}
	if at := t.hooks[s.webhook]; at.After(begun) && (t.checked[s.token].IsZero() || t.checked[s.token].After(at)) && begun.After(t.lostCommits) {
		w.violate("P3", "message %s is sent to a webhook that was changed since it was claimed, and nobody asked", short(s.id))
	}
	w.checkEventRecipient(s.id)
	w.note("%s: sends %s, attempt %d", s.p.name, s.message, s.attempt)
	for _, before := range t.sent[s.id.String()] {
		if before.message != s.message || !before.claimed.After(t.lostCommits) || !s.claimed.After(t.lostCommits) {
			continue
		}
		if before.body != s.body && !before.over {
			w.violate("P3", "attempt %d of message %s sends another body than attempt %d", s.attempt, s.message, before.attempt)
		}
		disturbed := before.p.dead || before.p.paused || !before.p.disturbedAt().Before(before.claimed) || w.late(before.p) || !s.p.disturbedAt().Before(s.claimed)
		// It was paused between its last reading of the clock and the call. Of what is answered
		// at the very instant of the call, it need not know yet.
		paused := s.at.Sub(s.claimed) > w.conf.lease/2
		switch {
		case !paused && before.p == s.p && before.ended && before.answered && before.endedAt.Before(s.at) && s.at.Sub(before.at) < time.Hour:
			w.violate("P3", "%s sends message %s as attempt %d, and knows that attempt %d has arrived", s.p.name, s.message, s.attempt, before.attempt)
		case disturbed || paused:
			if before.accepted {
				w.stats.Repeats++
			}
		case !before.ended:
			w.violate("P3", "message %s is sent as attempt %d beside attempt %d of %s, which nothing disturbed", s.message, s.attempt, before.attempt, before.p.name)
		case before.answered:
			w.violate("P3", "message %s is sent as attempt %d, although attempt %d has arrived and nothing disturbed %s", s.message, s.attempt, before.attempt, before.p.name)
		}
	}
	t.sent[s.id.String()] = append(t.sent[s.id.String()], s)
}

// checkClaim checks that a process that continues an attempt, after a look at its clock, still has the claim. Only what
// it cannot know may have ended the claim earlier.
func (w *world) checkClaim(p *process, d *notify.Delivery) {
	m, _ := w.db.Message(d.NotificationID)
	if m.Row == nil || m.Row.Token == d.Token && m.Row.DueAt.After(w.pgNow()) {
		return
	}
	begun := w.truth.messages[d.NotificationID].begun[beginning{d.Attempt, d.At.UnixNano()}]
	if excuse := w.truth.clocksJumped(p); begun.IsZero() || !excuse.Before(begun) || !w.truth.lostCommits.Before(begun) || !p.releasedAt.Before(begun) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violate("P3", "%s goes on with attempt %d of message %s, whose claim is over", p.name, d.Attempt, short(d.NotificationID))
}

// clocksJumped returns when a clock last jumped by which a process's leases are measured.
func (t *truth) clocksJumped(p *process) time.Time {
	if t.clockJumped.After(p.skewedAt) {
		return t.clockJumped
	}
	return p.skewedAt
}

// late reports whether a call of a process has waited for long.
func (w *world) late(p *process) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.pending {
		if c.p == p && c.notBefore.Equal(c.at) && w.Now().Sub(c.at) > w.lateAfter() {
			return true
		}
	}
	return false
}

// released notes that what a process held was given to others.
func (t *truth) released(name string) {
	for _, p := range t.w.processes {
		if p.name == name {
			p.disturb(t.w.Now())
			p.releasedAt = t.w.Now()
		}
	}
}

// accepted notes that a receiver has said that it took a message.
func (t *truth) accepted(*sending) { t.w.stats.Delivered++ }

// claimsOf returns who has claimed what is about to be settled.
func (w *world) claimsOf(list []dispatch.Settlement) []*model.OutboxRow {
	claims := make([]*model.OutboxRow, len(list))
	for i := range list {
		m, _ := w.db.Message(list[i].NotificationID)
		claims[i] = m.Row
	}
	return claims
}

// checkFenced checks that a process that has lost its claim settles nothing, except a message that
// has arrived.
func (w *world) checkFenced(list []dispatch.Settlement, before []*model.OutboxRow) {
	for i := range list {
		s, was := &list[i], before[i]
		if was == nil || was.Attempts == s.Attempt || s.Decision.Status == notify.Delivered {
			continue
		}
		// Who lost a claim to itself, by a failover, settles both attempts together: what
		// changed may be the work of the current one, or has arrived.
		if slices.ContainsFunc(list, func(o dispatch.Settlement) bool {
			return o.NotificationID == s.NotificationID && (o.Attempt == was.Attempts || o.Decision.Status == notify.Delivered)
		}) {
			continue
		}
		if m, _ := w.db.Message(s.NotificationID); m.Row == nil || *m.Row != *was {
			w.violate("P3", "attempt %d of message %s is settled, which has passed to attempt %d", s.Attempt, short(s.NotificationID), was.Attempts)
		}
	}
}
