package simulate

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/internal/simulate/model"
	"tocsin/notify"
)

// chosenEvents are the events that one of three webhooks of a tenant chooses, and for how long their messages are of use.
func chosenEvents(nth int) ([]notify.Reason, time.Duration) {
	switch nth {
	case 0:
		return notify.Events(), 2 * time.Minute
	case 1:
		return []notify.Reason{notify.ReasonResolved}, 0
	}
	return []notify.Reason{notify.ReasonAcknowledged, notify.ReasonReopened}, time.Minute
}

// chooses reports whether a webhook chose an event.
func (w *world) chooses(webhook uuid.UUID, event notify.Reason) (is bool, useful time.Duration) {
	if !w.conf.events {
		return false, 0
	}
	list, useful := chosenEvents(int(webhook[15]) - 1)
	return slices.Contains(list, event), useful
}

// eventOf is the event of an alert that a person brings to a state.
func eventOf(to alerts.State) notify.Reason {
	if to == alerts.Acknowledged {
		return notify.ReasonAcknowledged
	}
	return notify.ReasonResolved
}

// expectEvent notes that each webhook that chose an event, and was notified of the alert, must be notified of the event.
func (w *world) expectEvent(alert uuid.UUID, event notify.Reason) {
	for webhook := range w.notifiedBefore(alert) {
		if is, _ := w.chooses(webhook, event); is {
			w.expectFor(alert, webhook, event)
		}
	}
}

// expectEnd notes that each webhook that was notified of an alert must be notified of its end, however late.
func (w *world) expectEnd(alert uuid.UUID) {
	for webhook := range w.notifiedBefore(alert) {
		w.truth.lasting[notify.ID(alert, webhook, notify.ReasonResolved, w.expectFor(alert, webhook, notify.ReasonResolved))] = true
	}
}

// expectFor notes that a webhook must be notified of an event of an alert, and returns the generation of that message.
func (w *world) expectFor(alert, webhook uuid.UUID, event notify.Reason) (generation int) {
	known := w.truth.alerts[alert]
	if known == nil {
		return 0
	}
	if known.events == nil {
		known.events = map[place]int{}
	}
	at := place{webhook, event}
	known.events[at]++
	return known.events[at] - 1
}

// notifiedBefore returns the webhooks that were notified of an alert, or will be, by what was written before the present step: by
// a message that was not given up before it was attempted. A silence may have suppressed it.
func (w *world) notifiedBefore(alert uuid.UUID) map[uuid.UUID]bool {
	webhooks := map[uuid.UUID]bool{}
	for _, n := range w.db.NotificationsOf(alert) {
		known := w.truth.messages[n.ID]
		if n.About != uuid.Nil || known == nil || !known.exists {
			continue
		}
		m, _ := w.db.Message(n.ID)
		if !w.givenUp(&m) {
			webhooks[n.WebhookID] = true
		}
	}
	return webhooks
}

// checkEvents holds that each webhook has just the messages about what happened to an alert that it must have. What a failover
// left is what it left.
func (w *world) checkEvents(a *model.Alert, known *alertTruth) {
	got := map[place]int{}
	for _, n := range w.db.NotificationsOf(a.ID) {
		if n.About == uuid.Nil && n.Reason.IsEvent() {
			got[place{n.WebhookID, n.Reason}]++
		}
	}
	if w.truth.inFailover {
		known.events = got
		return
	}
	for at, n := range got {
		if want := known.events[at]; n != want {
			w.violate("P2", "alert %s, which is %s, has %d notifications %s for webhook %s, want %d", short(a.ID), a.State, n, at.reason, short(at.webhook), want)
		}
	}
	for at, want := range known.events {
		if got[at] == 0 {
			w.violate("P2", "alert %s, which is %s, has no notification %s for webhook %s, want %d", short(a.ID), a.State, at.reason, short(at.webhook), want)
		}
	}
}

// expiry returns for how long a message is of use, and whether that has an end.
func (w *world) expiry(n *model.Notification) (useful time.Duration, ends bool) {
	switch is, useful := w.chooses(n.WebhookID, n.Reason); {
	case n.Reason == notify.ReasonReminder:
		if r := w.truth.rules[n.RuleID]; r != nil {
			return time.Duration(r.present().def.ReNotifyMinutes) * time.Minute, true
		}
	case n.Reason.IsEvent() && is && !w.truth.lasting[n.ID]:
		if useful == 0 {
			useful = notify.DefaultEventMaxAge
		}
		return useful, true
	}
	return 0, false
}

// checkAge holds that a message that is of no use any more is not sent, unless a person sends it again. Where there are quiet hours,
// its age counts from their end.
func (w *world) checkAge(d *notify.Delivery) {
	m, there := w.db.Message(d.NotificationID)
	if !there || d.Generation > 0 || w.conf.quiet {
		return
	}
	if useful, ends := w.expiry(&m.Notification); ends && w.pgNow().Sub(m.CreatedAt) > useful+time.Millisecond {
		w.violate("P3", "message %s (%s) is sent %v after it was written", short(m.ID), m.Reason, w.pgNow().Sub(m.CreatedAt))
	}
}

// tooOld reports whether a message that was given up had been of no use any more.
func (w *world) tooOld(m *model.Message) bool {
	useful, ends := w.expiry(&m.Notification)
	return ends && m.Settlement.SettledAt.Sub(m.CreatedAt) >= useful
}
