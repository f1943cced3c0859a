package model

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/evaluator"
	"tocsin/notify"
)

// undoWithin is for how long what a person did can be undone.
const undoWithin = 10 * time.Minute

// Escalation is the row beside an alert that escalates: its next step, and when that is due; without an
// instant, there is none. Skipped are the steps that were skipped since the last one that was taken, for an undo.
type Escalation struct {
	AfterMinutes int
	DueAt        time.Time
	// CountsFrom is the instant from which the minutes count, because quiet hours held messages until then;
	// the zero time is when the alert fired.
	CountsFrom time.Time
	Skipped    []SkippedStep
}

// SkippedStep is a step that was skipped, and when.
type SkippedStep struct {
	AfterMinutes int
	At           time.Time
}

// Next returns the minutes of the next step, 0 for none.
func (e Escalation) Next() int {
	if e.DueAt.IsZero() {
		return 0
	}
	return e.AfterMinutes
}

// DueStep is a step that was found to be due: what it is by then, and whether it is skipped.
type DueStep struct {
	Alert        uuid.UUID
	AfterMinutes int
	Skipped      bool
}

// Escalation returns the next step of an alert.
func (db *Postgres) Escalation(alert uuid.UUID) (Escalation, bool) { return db.escalations.get(alert) }

func minutes(n int) time.Duration { return time.Duration(n) * time.Minute }

// startEscalation has the first step of an alert that has begun to fire wait for its time.
func (db *Postgres) startEscalation(id uuid.UUID) {
	a := db.alerts.rows[id]
	if !a.Routing.Escalates() || db.escalations.has(id) || a.State != alerts.Firing {
		return
	}
	first := a.Routing.Escalation()[0].AfterMinutes
	db.escalations.put(id, Escalation{AfterMinutes: first, DueAt: a.FiredAt.Add(minutes(first))})
}

// startEscalations does so for what a commit raised.
func (db *Postgres) startEscalations(b *evaluator.Batch, inserted map[uuid.UUID]bool) {
	if b.Replay != nil && db.has(ReplaysEscalateNothing) {
		return
	}
	for i := range b.Instances {
		if inserted[b.Instances[i].ID] {
			db.startEscalation(b.Instances[i].ID)
		}
	}
}

// resumeEscalation has an alert that fires again, after what was done at an instant is undone, take the
// first step that was skipped since, unless it is to take an earlier one.
func (db *Postgres) resumeEscalation(id uuid.UUID, since, now time.Time) {
	e, there := db.escalations.get(id)
	if !there || db.alerts.rows[id].State != alerts.Firing || !db.has(EscalationResumes) {
		return
	}
	first := 0
	for _, v := range e.Skipped {
		if !v.At.Before(since) && (first == 0 || v.AfterMinutes < first) {
			first = v.AfterMinutes
		}
	}
	if first > 0 && (e.DueAt.IsZero() || first < e.AfterMinutes) {
		e.AfterMinutes, e.DueAt = first, now
		db.escalations.put(id, e)
	}
}

// dueStep returns the step of an alert that is due.
func (db *Postgres) dueStep(id uuid.UUID, now time.Time) (DueStep, bool) {
	e, there := db.escalations.get(id)
	if !there || e.DueAt.IsZero() || e.DueAt.After(now) {
		return DueStep{}, false
	}
	a := db.alerts.rows[id]
	z, snoozed := db.snoozes.get(id)
	skipped := a.State != alerts.Firing && db.has(EscalationSkips) ||
		snoozed && z.Until.After(now) && db.has(EscalationSnoozed) || db.rules.rows[a.RuleID].Deleted
	return DueStep{id, e.AfterMinutes, skipped}, true
}

// EscalationsDue returns the steps that are due.
func (db *Postgres) EscalationsDue() (list []DueStep) {
	for _, id := range byID(&db.escalations) {
		if step, due := db.dueStep(id, db.now()); due {
			list = append(list, step)
		}
	}
	return list
}

// Escalate takes the steps that were found to be due, if they are still, and returns how many
// messages there are for each webhook. The model has no teams: a step names its webhooks.
func (db *Postgres) Escalate(found []DueStep) (due map[uuid.UUID]int, err error) {
	due = map[uuid.UUID]int{}
	err = db.tx(func() error {
		now := db.now()
		for _, step := range found {
			if db.has(EscalationLocked) {
				var still bool
				if step, still = db.dueStep(step.Alert, now); !still {
					continue
				}
			}
			if err := db.escalate(step, now, due); err != nil {
				return err
			}
		}
		return nil
	})
	return due, err
}

func (db *Postgres) escalate(step DueStep, now time.Time, due map[uuid.UUID]int) error {
	a, there := db.alerts.get(step.Alert)
	if !there {
		return nil
	}
	e := db.escalations.rows[a.ID]
	if until := db.quietUntil(a.ID); !step.Skipped && !until.IsZero() && db.has(EscalationWaits) {
		e.CountsFrom, e.DueAt = until, until.Add(minutes(e.AfterMinutes))
		if least := now.Add(time.Minute); e.DueAt.Before(least) {
			e.DueAt = least
		}
		db.escalations.put(a.ID, e)
		return nil
	}
	var webhooks []uuid.UUID
	next := 0
	for _, s := range a.Routing.Escalation() {
		switch {
		case s.AfterMinutes == step.AfterMinutes && !step.Skipped:
			webhooks = s.WebhookIDs
		case s.AfterMinutes > step.AfterMinutes && next == 0:
			next = s.AfterMinutes
		}
	}
	if err := db.follow(&a, webhooks, follower{reason: notify.ReasonEscalated, step: step.AfterMinutes}, now, due); err != nil {
		return err
	}
	if len(webhooks) > 0 {
		db.putAlert(a)
	}
	if !db.has(EscalationMoves) {
		db.log.commit()
	}
	if next == 0 && !step.Skipped {
		db.escalations.remove(a.ID)
		return nil
	}
	if step.Skipped {
		e.Skipped = append(slices.Clone(e.Skipped), SkippedStep{e.AfterMinutes, now})
	} else {
		e.Skipped = nil
	}
	if e.DueAt = (time.Time{}); next > 0 {
		from := a.FiredAt
		if !e.CountsFrom.IsZero() {
			from = e.CountsFrom
		}
		e.AfterMinutes, e.DueAt = next, from.Add(minutes(next))
		if least := now.Add(minutes(min(next-step.AfterMinutes, 5))); e.DueAt.Before(least) {
			e.DueAt = least
		}
	}
	db.escalations.put(a.ID, e)
	return nil
}

// quietUntil returns the end of the quiet hours that hold messages about an alert for webhooks that know nothing
// of it, the zero time where none do.
func (db *Postgres) quietUntil(id uuid.UUID) (until time.Time) {
	of, _ := db.ofAlert.get(id)
	for _, message := range of {
		if o, open := db.outbox.get(message); open && o.QuietUntil.After(until) && !db.notified(id, o.WebhookID) {
			until = o.QuietUntil
		}
	}
	return until
}

// follower is a message that follows others, of an escalation after how many minutes, or of an event that the webhook chose.
type follower struct {
	reason notify.Reason
	step   int
	event  bool
}

// follow writes messages about an alert behind the earlier ones, each of which a silence may suppress and
// quiet hours may hold.
func (db *Postgres) follow(a *Alert, webhooks []uuid.UUID, f follower, now time.Time, due map[uuid.UUID]int) error {
	by, silenced := db.silencedAlert(a, now)
	for _, webhook := range slices.SortedFunc(slices.Values(webhooks), compareIDs) {
		generation := 0
		for _, n := range db.NotificationsOf(a.ID) {
			if n.WebhookID == webhook && n.Reason == f.reason && n.About == uuid.Nil {
				generation++
			}
		}
		if f.step > 0 && db.has(EscalationByStep) {
			generation = f.step
		}
		n := Notification{
			ID: notify.ID(a.ID, webhook, f.reason, generation), Generation: generation, AlertID: a.ID, RuleID: a.RuleID, WebhookID: webhook, Reason: f.reason,
		}
		by, suppressed := by, silenced
		if f.reason.IsEvent() && db.has(EndsHeard) {
			heard, last := db.heard(a.ID, webhook)
			if !heard {
				continue
			}
			if !suppressed && last != uuid.Nil {
				by, suppressed = last, true
			}
		}
		if err := db.notify(n, now); err != nil {
			return err
		}
		if suppressed {
			db.suppress(n.ID, by, now)
			continue
		}
		held := db.quiet(n.ID, now)
		if f.event {
			db.expire(n.ID, db.webhooks.rows[webhook].EventMaxAge, now)
		}
		if !held {
			due[webhook]++
		}
	}
	return nil
}

// expire has a message that was just written be of no use after a time, 0 for a day, which counts from the end of quiet hours.
func (db *Postgres) expire(id uuid.UUID, after time.Duration, now time.Time) {
	o := db.outbox.rows[id]
	if after == 0 {
		after = notify.DefaultEventMaxAge
	}
	if o.ExpiresAt = now.Add(after); o.QuietUntil.After(now) {
		o.ExpiresAt = o.QuietUntil.Add(after)
	}
	db.outbox.put(id, o)
}

// expired reports whether a message is of no use any more.
func (o *OutboxRow) expired(now time.Time) bool {
	return !o.ExpiresAt.IsZero() && !o.ExpiresAt.After(now)
}

// notifyEvent notifies the webhooks that chose an event, and were notified of an alert.
func (db *Postgres) notifyEvent(a *Alert, reason notify.Reason, now time.Time, due map[uuid.UUID]int) error {
	return db.follow(a, db.choosing(a.ID, reason), follower{reason: reason, event: true}, now, due)
}

// choosing returns which of the webhooks that had a message that says that an alert is open chose an event.
func (db *Postgres) choosing(alert uuid.UUID, event notify.Reason) []uuid.UUID {
	return slices.DeleteFunc(db.recipients(alert), func(id uuid.UUID) bool { return !slices.Contains(db.webhooks.rows[id].Events, event) })
}

// heard reports whether a webhook has heard of an alert, or will: whether there is a message that counts. It also
// returns the silence of the last one, if silences suppressed all of them. Messages that were given up before
// the first attempt do not count.
func (db *Postgres) heard(alert, webhook uuid.UUID) (heard bool, by uuid.UUID) {
	all := true
	for _, n := range db.NotificationsOf(alert) {
		s, ended := db.settlements.get(n.ID)
		if n.WebhookID != webhook || n.About != uuid.Nil || givenUp(&s) {
			continue
		}
		heard, by, all = true, s.Silence, all && ended && s.Silence != uuid.Nil
	}
	if !all {
		by = uuid.Nil
	}
	return heard, by
}

// needless reports whether a waiting message is of no use any more, unless a person sends it again: one of an
// escalation whose alert was looked after for longer than that can be undone, and the end of an alert of which no
// message tells the webhook that it fires.
func (db *Postgres) needless(n *Notification, o *OutboxRow, now time.Time) bool {
	switch {
	case o.Generation > 0:
		return false
	case n.Reason == notify.ReasonEscalated && db.has(EscalationDiscarded):
		a := db.alerts.rows[n.AlertID]
		since, is := a.LookedAfter()
		return is && now.Sub(since) > undoWithin+time.Minute
	case n.Reason.IsEvent() && db.has(EndsHeard):
		return !db.wasNotified(n.AlertID, n.WebhookID)
	}
	return false
}

// wasNotified reports whether a message has notified a webhook, by itself or in a digest, that an alert fires. In doubt, it has.
func (db *Postgres) wasNotified(alert, webhook uuid.UUID) bool {
	for _, n := range db.NotificationsOf(alert) {
		if n.WebhookID != webhook || n.About != uuid.Nil || n.Reason.IsEvent() {
			continue
		}
		id := n.ID
		if digest, in := db.digestOf.get(id); in {
			id = digest
		}
		if db.MayHaveLeft(id) {
			return true
		}
	}
	return false
}

// givenUp reports whether a message was given up before the first attempt.
func givenUp(s *Settlement) bool {
	return s.Status == discarded && s.Attempt.Verdict == notify.VerdictNotMade && s.Attempt.Number == 1
}

// LookedAfter returns since when somebody looks after the alert, or it is resolved.
func (a *Alert) LookedAfter() (since time.Time, is bool) {
	switch a.State {
	case alerts.Acknowledged:
		return a.AcknowledgedAt, true
	case alerts.Resolved:
		return a.ResolvedAt, true
	case alerts.Pending, alerts.Firing:
	}
	return time.Time{}, false
}
