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

// stepTruth is a step of an escalation: whom it notifies, and what has become of it.
type stepTruth struct {
	minutes  int
	webhooks []uuid.UUID
	is       stepState
	// skippedAt is when it was skipped; resumed says that this was undone.
	skippedAt time.Time
	resumed   bool
}

type stepState int

const (
	// stepAhead is still to come.
	stepAhead stepState = iota
	// stepTaken has notified its webhooks.
	stepTaken
	// stepSkipped was passed over while somebody looked after the alert, or it was snoozed.
	stepSkipped
	// stepOver is one of these; after a failover, nobody can tell which.
	stepOver
)

// escalations returns the messages by which an alert has escalated since the last look, and notes them as
// those of a step, of which there are no others for the same webhooks.
func (w *world) escalations(a *model.Alert, known *alertTruth, step int) (fresh []model.Notification) {
	all := slices.DeleteFunc(w.db.NotificationsOf(a.ID), func(n model.Notification) bool { return n.Reason != notify.ReasonEscalated })
	by := map[uuid.UUID]uuid.UUID{}
	for i := range all {
		n := &all[i]
		if of, seen := known.stepOf[n.ID]; !seen {
			w.checkStepID(n, step)
			known.stepOf[n.ID] = step
			fresh = append(fresh, *n)
		} else if of != step {
			continue
		}
		if other, twice := by[n.WebhookID]; twice {
			w.violate("P2", "the step of alert %s after %d min notifies webhook %s by %s and by %s", short(a.ID), step, short(n.WebhookID), short(other), short(n.ID))
		}
		by[n.WebhookID] = n.ID
	}
	return fresh
}

// checkStepID holds that a step has one id for each webhook, whatever failovers take back, and no other step has it:
// a receiver would take the message for a repeat.
func (w *world) checkStepID(n *model.Notification, step int) {
	t := &w.truth
	key := fmt.Sprint(n.AlertID, n.WebhookID, n.Reason, step)
	if was, known := t.notified[key]; known && was != n.ID {
		w.violate("P2", "the message of alert %s after %d min came back as %s, and was %s", short(n.AlertID), step, short(n.ID), short(was))
	}
	if was, known := t.stepIDs[n.ID]; known && was != step {
		w.violate("P2", "the message %s of alert %s after %d min has the id of the one after %d min", short(n.ID), short(n.AlertID), step, was)
	}
	t.notified[key], t.stepIDs[n.ID] = n.ID, step
}

func webhooksOf(list []model.Notification) (ids []uuid.UUID) {
	for i := range list {
		ids = append(ids, list[i].WebhookID)
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	return ids
}

// snoozedNow reports whether an alert is snoozed, as people asked for.
func (w *world) snoozedNow(known *alertTruth) bool {
	return known.snooze != nil && known.snooze.Until.After(w.pgNow())
}

// looksAfter reports whether somebody looks after an alert at present, or it is quiet.
func (w *world) looksAfter(a *model.Alert, known *alertTruth) bool {
	return a.State != alerts.Firing || w.snoozedNow(known)
}

// checkEscalation holds that each step of an alert notifies its webhooks once, when it is due and nobody
// looks after the alert, or is skipped.
func (w *world) checkEscalation(a *model.Alert, known *alertTruth) {
	row, there := w.db.Escalation(a.ID)
	if known.routed == nil || w.truth.inFailover {
		w.knowSteps(a, known, row.Next())
		return
	}
	if known.stepOf == nil {
		w.beginEscalation(a, known, row, there)
		return
	}
	was := known.next
	fresh := w.escalations(a, known, was)
	step := known.step(was)
	switch {
	case len(fresh) > 0 && step == nil:
		w.violate("P2", "alert %s escalates by %s, and no step was to come", short(a.ID), short(fresh[0].ID))
		return
	case len(fresh) > 0:
		w.checkTaken(a, known, step, fresh)
		if row.Next() == was {
			w.violate("P2", "the step of alert %s after %d min is taken, and still to come", short(a.ID), was)
		}
		step.is = stepTaken
		known.next = row.Next()
	case step != nil && len(step.webhooks) == 0 && (row.Next() == 0 || row.Next() > was) && !w.looksAfter(a, known):
		// Its webhooks do not exist any more: it is taken, and notifies nobody.
		step.is, known.next = stepTaken, row.Next()
	case step != nil && (row.Next() == 0 || row.Next() > was):
		if !w.looksAfter(a, known) {
			w.violate("P2", "the step of alert %s after %d min notifies nobody, and nobody looks after the alert", short(a.ID), was)
		}
		if at := a.FiredAt.Add(step.after()); at.After(w.pgNow()) {
			w.violate("P2", "the step of alert %s after %d min is skipped before its time", short(a.ID), was)
		}
		step.is, step.skippedAt = stepSkipped, w.pgNow()
		known.next = row.Next()
		w.stats.Skipped++
	}
	w.checkResumed(a, known, row.Next())
	if first := known.firstAhead(); first != row.Next() && w.violation == nil {
		w.violate("P2", "alert %s is to escalate after %d min, and its next step comes after %d min", short(a.ID), row.Next(), first)
	}
}

// beginEscalation holds that an alert which begins to fire waits for its first step, unless a replay
// raised it.
func (w *world) beginEscalation(a *model.Alert, known *alertTruth, row model.Escalation, there bool) {
	known.stepOf, known.next = map[uuid.UUID]int{}, row.Next()
	if len(known.steps) == 0 {
		if there {
			w.violate("P2", "alert %s escalates, and its route has no steps", short(a.ID))
		}
		return
	}
	w.stats.Escalating++
	first := &known.steps[0]
	replayed := w.mayBeReplayed(a)
	switch {
	case there && known.onlyReplays:
		w.violate("P2", "alert %s escalates, and replays alone raise it", short(a.ID))
	case !there && replayed:
		for i := range known.steps {
			known.steps[i].is = stepOver
		}
	case row.Next() != first.minutes || !row.DueAt.Equal(a.FiredAt.Add(first.after())):
		w.violate("P2", "alert %s begins to escalate after %d min at %s", short(a.ID), row.Next(), w.instant(row.DueAt.UnixNano()))
	}
}

// mayBeReplayed reports whether a replay may have raised an alert.
func (w *world) mayBeReplayed(a *model.Alert) bool {
	e, r := w.truth.byKey[exchangeKey{a.TenantID, a.Key}], w.truth.rules[a.RuleID]
	if a.Window || e == nil || r == nil {
		return false
	}
	n, _ := w.truth.replayed(r, e)
	return n > 0
}

// knowSteps takes over what is stored after a failover.
func (w *world) knowSteps(a *model.Alert, known *alertTruth, next int) {
	if known.routed == nil {
		known.stepOf, known.next, known.resumedSince, known.notifiedAt = nil, 0, time.Time{}, time.Time{}
		return
	}
	former := known.stepOf
	known.notifiedAt = time.Time{}
	known.stepOf, known.next, known.resumedSince = map[uuid.UUID]int{}, next, time.Time{}
	for _, n := range w.db.NotificationsOf(a.ID) {
		if n.Reason == notify.ReasonEscalated {
			known.stepOf[n.ID] = former[n.ID]
		}
	}
	for i := range known.steps {
		s := &known.steps[i]
		if s.is = stepOver; next > 0 && s.minutes >= next {
			s.is = stepAhead
		}
	}
}

// checkTaken holds that a step was to be taken.
func (w *world) checkTaken(a *model.Alert, known *alertTruth, step *stepTruth, fresh []model.Notification) {
	w.stats.Escalated++
	if got := webhooksOf(fresh); !slices.Equal(got, step.webhooks) {
		w.violate("P2", "the step of alert %s after %d min notifies the webhooks %v, want %v", short(a.ID), step.minutes, got, step.webhooks)
	}
	// A step that was skipped was due then, and Postgres's clock may have been put back since.
	if at := a.FiredAt.Add(step.after()); at.After(w.pgNow()) && !step.resumed {
		w.violate("P2", "the step of alert %s after %d min is taken before its time", short(a.ID), step.minutes)
	}
	if w.holds(a.ID) {
		w.violate("P2", "the step of alert %s after %d min is taken while quiet hours hold the messages about the alert", short(a.ID), step.minutes)
	}
	if at := known.notifiedAt.Add(step.after()); !known.notifiedAt.IsZero() && at.After(w.pgNow()) && !step.resumed {
		w.violate("P2", "the step of alert %s after %d min is taken at %s, and a webhook was notified of the alert at %s", short(a.ID), step.minutes, w.instant(w.pgNow().UnixNano()), w.instant(known.notifiedAt.UnixNano()))
	}
	if w.looksAfter(a, known) {
		w.violate("P2", "alert %s escalates after %d min, although it is %s, snoozed %v", short(a.ID), step.minutes, a.State, w.snoozedNow(known))
	}
}

// checkResumed holds that what is undone ends no escalation: it goes on at the first step that was skipped
// since, where none was taken after it.
func (w *world) checkResumed(a *model.Alert, known *alertTruth, next int) {
	since := known.resumedSince
	known.resumedSince = time.Time{}
	if since.IsZero() || a.State != alerts.Firing {
		return
	}
	last := -1
	for i := range known.steps {
		if known.steps[i].is == stepTaken {
			last = i
		}
	}
	resumed := false
	for i := range known.steps[last+1:] {
		s := &known.steps[last+1+i]
		resumed = resumed || s.is == stepSkipped && !s.skippedAt.Before(since)
		// What became of a step before a failover is not known: it goes on or does not.
		if s.is != stepAhead && (resumed || s.is == stepOver && next > 0 && s.minutes >= next) {
			s.is, s.resumed = stepAhead, true
			w.stats.Resumed++
		}
	}
	known.next = next
}

func (s *stepTruth) after() time.Duration { return time.Duration(s.minutes) * time.Minute }

// step returns the step after some minutes, nil where there is none.
func (known *alertTruth) step(minutes int) *stepTruth {
	for i := range known.steps {
		if known.steps[i].minutes == minutes {
			return &known.steps[i]
		}
	}
	return nil
}

// firstAhead returns the minutes of the first step that is still to come, 0 for none.
func (known *alertTruth) firstAhead() int {
	for i := range known.steps {
		if known.steps[i].is == stepAhead {
			return known.steps[i].minutes
		}
	}
	return 0
}

// checkSnooze holds that a snooze ends in one reminder for each webhook that was notified of the alert, when it is
// over, and in none where the alert is resolved or the snooze was cancelled.
func (w *world) checkSnooze(a *model.Alert, known *alertTruth) {
	row, there := w.db.Snoozed(a.ID)
	if known.reminderOf == nil {
		known.reminderOf = map[uuid.UUID]time.Time{}
	}
	var fresh []model.Notification
	var notified []uuid.UUID
	was := known.snooze
	present := map[uuid.UUID]time.Time{}
	for _, n := range w.db.NotificationsOf(a.ID) {
		switch n.Reason { //nolint:exhaustive // nobody is reminded of the others
		case notify.ReasonSnoozeEnded:
			set, seen := known.reminderOf[n.ID]
			if !seen {
				w.checkNotificationID(&n)
				fresh = append(fresh, n)
				if was != nil {
					set = was.SnoozedAt
				}
			}
			if present[n.ID] = set; there && set.Equal(row.SnoozedAt) {
				w.violate("P2", "message %s reminds of alert %s, of which the snooze is to end still", short(n.ID), short(a.ID))
			}
		case notify.ReasonFired, notify.ReasonReminder, notify.ReasonEscalated:
			if !slices.Contains(notified, n.WebhookID) {
				notified = append(notified, n.WebhookID)
			}
		}
	}
	known.reminderOf = present
	slices.SortFunc(notified, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	switch {
	case w.truth.inFailover:
		if known.snooze = nil; there {
			known.snooze = &row
		}
	case len(fresh) > 0:
		known.snooze = nil
		w.checkReminded(a, was, fresh, notified)
	case was != nil && !there:
		known.snooze = nil
		if a.State != alerts.Resolved && len(notified) > 0 {
			w.violate("P2", "the snooze of alert %s, which is %s, has ended without a reminder", short(a.ID), a.State)
		}
	}
}

func (w *world) checkReminded(a *model.Alert, was *model.Snooze, fresh []model.Notification, notified []uuid.UUID) {
	w.stats.Reminded++
	switch got := webhooksOf(fresh); {
	case was == nil:
		w.violate("P2", "message %s reminds of a snooze of alert %s, which has ended before", short(fresh[0].ID), short(a.ID))
	case was.Until.After(w.pgNow()):
		w.violate("P2", "message %s reminds of alert %s, which is snoozed until %s", short(fresh[0].ID), short(a.ID), w.instant(was.Until.UnixNano()))
	case a.State == alerts.Resolved:
		w.violate("P2", "message %s reminds of alert %s, which is resolved", short(fresh[0].ID), short(a.ID))
	case !slices.Equal(got, notified):
		w.violate("P2", "the end of the snooze of alert %s notifies the webhooks %v, and %v were notified of the alert", short(a.ID), got, notified)
	}
}

// checkEnded holds, in the end, that no snooze and no escalation is left.
func (w *world) checkEnded() {
	for _, id := range w.db.AlertIDs() {
		if e, _ := w.db.Escalation(id); e.Next() > 0 {
			w.violate("P2", "the step of alert %s after %d min is never taken", short(id), e.Next())
		}
		if z, there := w.db.Snoozed(id); there {
			w.violate("P2", "the snooze of alert %s until %s never ends", short(id), w.instant(z.Until.UnixNano()))
		}
	}
}
