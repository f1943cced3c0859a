package simulate

import (
	"maps"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/internal/simulate/model"
	"tocsin/notify"
	"tocsin/rules"
)

// heldTruth is a message that quiet hours hold, as it was when that was last looked at.
type heldTruth struct {
	alert, webhook uuid.UUID
	reason         notify.Reason
	until          time.Time
	generation     int
}

// checkHours holds that quiet hours hold a message that has just been written where the checker says so, until
// they end, and no other.
func (w *world) checkHours(m *model.Message) {
	a, there := w.db.Alert(m.AlertID)
	if !there || m.Row == nil || m.Reason == notify.ReasonDigest {
		return
	}
	end := w.truth.quietUntil(m.WebhookID, m.CreatedAt)
	known := w.truth.alerts[a.ID]
	switch passes := a.Severity == rules.Critical || a.Health || m.About != uuid.Nil; {
	case m.Row.QuietUntil.IsZero():
		if end.After(m.CreatedAt) && !passes && (m.Reason != notify.ReasonFired || !w.mayBeReplayed(&a)) {
			w.violate("P2", "message %s about alert %s is written at %s to be sent, within quiet hours until %s", short(m.ID), short(a.ID), w.instant(m.CreatedAt.UnixNano()), w.instant(end.UnixNano()))
		}
	case m.Reason == notify.ReasonFired && known != nil && known.onlyReplays:
		w.violate("P2", "message %s about alert %s is held, and replays alone raise it", short(m.ID), short(a.ID))
	case passes:
		w.violate("P2", "message %s about alert %s is held, which is %s, about Tocsin %v", short(m.ID), short(a.ID), a.Severity, a.Health)
	case !m.Row.QuietUntil.Equal(end):
		w.violate("P2", "message %s of %s is held until %s, and quiet hours end at %s", short(m.ID), w.instant(m.CreatedAt.UnixNano()), w.instant(m.Row.QuietUntil.UnixNano()), w.instant(end.UnixNano()))
	default:
		w.stats.Held++
	}
}

// checkHeld holds that what quiet hours hold waits until they are over, and then is sent or ended as it should.
// What has changed is looked at together: the messages about an alert for a webhook end together.
func (w *world) checkHeld(messages []uuid.UUID) {
	t := &w.truth
	type target struct{ alert, webhook uuid.UUID }
	var list []target
	left := map[target]map[uuid.UUID]model.Message{}
	begun := map[uuid.UUID]*heldTruth{}
	for _, id := range messages {
		m, there := w.db.Message(id)
		was := t.quieted[id]
		is := there && m.Row != nil && !m.Row.QuietUntil.IsZero()
		switch {
		case t.inFailover || !there:
			if delete(t.quieted, id); is {
				begun[id] = heldOf(&m)
			}
		case is && was == nil && !t.messages[id].fresh:
			w.violate("P3", "message %s is held by quiet hours after it was to be sent", short(id))
		case is && was == nil:
			begun[id] = heldOf(&m)
		case is:
			if end := t.quietUntil(m.WebhookID, w.pgNow()).Truncate(time.Microsecond); !m.Row.QuietUntil.Equal(was.until) && !m.Row.QuietUntil.Equal(end) {
				w.violate("P3", "the end for message %s is moved to %s, and quiet hours end at %s", short(id), w.instant(m.Row.QuietUntil.UnixNano()), w.instant(end.UnixNano()))
			}
			was.until = m.Row.QuietUntil
		case was != nil && (m.Generation > was.generation || t.messages[id].discarded):
			delete(t.quieted, id) // a person has sent it, or has given it up
			a, _ := w.db.Alert(was.alert)
			if known := t.alerts[was.alert]; known != nil && a.State == alerts.Firing && !t.messages[id].discarded && !w.notified(was.alert, was.webhook, id) {
				known.notifiedAt = w.pgNow()
			}
		case was != nil && !t.lostCommits.IsZero() && m.Settlement != nil && m.Settlement.Status == notify.Delivered:
			delete(t.quieted, id) // a failover took its release back, and the success of the attempt that followed is stored
		case was != nil && was.reason == notify.ReasonDigest: // of a silence, which is about no alert
			if delete(t.quieted, id); was.until.After(w.pgNow()) || m.Row == nil {
				w.violate("P3", "digest %s leaves quiet hours before %s, when they end, or is not sent", short(id), w.instant(was.until.UnixNano()))
			}
		case was != nil:
			of := target{was.alert, was.webhook}
			if left[of] == nil {
				left[of] = map[uuid.UUID]model.Message{}
				list = append(list, of)
			}
			left[of][id] = m
		}
	}
	for _, of := range list {
		w.checkReleased(of.alert, of.webhook, left[of])
	}
	maps.Copy(t.quieted, begun)
}

// notified reports whether a webhook is notified of an alert by a message that quiet hours do not hold, other than one.
func (w *world) notified(alert, webhook, other uuid.UUID) bool {
	for _, n := range w.db.NotificationsOf(alert) {
		if n.WebhookID != webhook || n.About != uuid.Nil || n.ID == other || w.truth.quieted[n.ID] != nil {
			continue
		}
		m, _ := w.db.Message(n.ID)
		if m.Digest != uuid.Nil {
			m, _ = w.db.Message(m.Digest)
		}
		if m.Settlement == nil || m.Settlement.Status != notify.Suppressed && m.Settlement.Status != notify.Discarded {
			return true
		}
	}
	return false
}

func heldOf(m *model.Message) *heldTruth {
	return &heldTruth{m.AlertID, m.WebhookID, m.Reason, m.Row.QuietUntil, m.Generation}
}

// checkReleased holds that quiet hours are over for what has left them, for all of it at once, and that one
// message says that the alert fires, if it does and nobody handles it, and that others are sent to
// the webhooks that were notified of the alert.
func (w *world) checkReleased(alert, webhook uuid.UUID, left map[uuid.UUID]model.Message) {
	t, now := &w.truth, w.pgNow()
	a, _ := w.db.Alert(alert)
	all := w.db.NotificationsOf(alert)
	notified := w.notified(alert, webhook, uuid.Nil)
	known, fires := notified, false
	for i := range all {
		n := &all[i]
		was := t.quieted[n.ID]
		if was == nil || n.WebhookID != webhook {
			continue
		}
		m, gone := left[n.ID]
		switch over := !was.until.After(now); {
		case gone && !over:
			w.violate("P3", "message %s leaves quiet hours before %s, when they end", short(n.ID), w.instant(was.until.UnixNano()))
		case !gone && over:
			w.violate("P3", "message %s is held beyond the end of quiet hours, and others about alert %s are not", short(n.ID), short(alert))
		case !gone:
			continue
		}
		want, first := notified, false
		handled, unsure := w.lookedAfterFor(&a, n, undoable, now)
		if !known {
			handled, unsure = w.lookedAfterFor(&a, nil, undoable, now)
		}
		if announces(n.Reason) {
			want = !handled && !fires
			fires = fires || want
			first = !notified && want
			notified = notified || want
		}
		switch sent, ended := m.Row != nil, m.Settlement != nil && m.Settlement.Status == notify.Discarded; {
		case sent == ended:
			w.violate("P3", "message %s leaves quiet hours and is neither sent nor ended: %+v", short(n.ID), m.Settlement)
		case sent != want && !unsure:
			w.violate("P2", "message %s (%s) about alert %s, which is %s, is sent after quiet hours: %v, want %v", short(n.ID), n.Reason, short(alert), a.State, sent, want)
		case sent:
			w.stats.Released++
			if first {
				t.alerts[alert].notifiedAt = now
			}
		default:
			w.stats.Needless++
		}
		delete(t.quieted, n.ID)
	}
}

// lookedAfterFor reports whether somebody has looked after an alert for longer than a time, or snoozed it so long
// ago, and whether it is so close to that time that both answers are right. That the alert was acknowledged before
// a snooze ended does not count for the message about that end, if there is one.
func (w *world) lookedAfterFor(a *model.Alert, message *model.Notification, long time.Duration, now time.Time) (handled, unsure bool) {
	judge := func(since time.Time) {
		ago := now.Sub(since)
		handled = handled || ago > long
		unsure = unsure || ago > long-time.Millisecond && ago < long+time.Millisecond
	}
	if since, looked := a.LookedAfter(); looked {
		reminds := message != nil && message.Reason == notify.ReasonSnoozeEnded && a.State == alerts.Acknowledged && message.CreatedAt.After(since)
		if !reminds {
			judge(since)
		}
	}
	if known := w.truth.alerts[a.ID]; w.snoozedNow(known) {
		judge(known.snooze.SnoozedSince)
	}
	return handled, unsure
}

// announces reports whether a message says that an alert fires.
func announces(reason notify.Reason) bool {
	return reason == notify.ReasonFired || reason == notify.ReasonReminder || reason == notify.ReasonSnoozeEnded || reason == notify.ReasonEscalated
}

// holds reports whether quiet hours held a message about an alert when that was last looked at.
func (w *world) holds(alert uuid.UUID) bool {
	for _, h := range w.truth.quieted {
		if h.alert == alert && !w.notified(alert, h.webhook, uuid.Nil) {
			return true
		}
	}
	return false
}

// checkOver holds, when all faults have been over for minutes, that nothing is held for webhooks that lost their
// quiet hours before.
func (w *world) checkOver() {
	for _, id := range w.db.Messages() {
		h := w.truth.quieted[id]
		if h == nil {
			continue
		}
		if list := w.truth.hours[h.webhook]; len(list) == 0 || len(list[len(list)-1].spans) == 0 {
			w.violate("P3", "message %s is held until %s, although webhook %s has no quiet hours any more", short(id), w.instant(h.until.UnixNano()), short(h.webhook))
		}
	}
}
