package model

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/notify/dispatch"
)

const (
	incidentOff     = "OFF"
	incidentFailing = "FAILING"
)

// Settle stores outcomes and their consequences.
func (db *Postgres) Settle(_ context.Context, settlements []dispatch.Settlement) ([]dispatch.Settled, error) {
	settled := make([]dispatch.Settled, len(settlements))
	err := db.tx(func() error {
		now := db.now()
		for i := range settlements {
			s := &settlements[i]
			o, there := db.outbox.get(s.NotificationID)
			db.keepReference(s)
			valid := there && (o.Token == s.Token && o.Token != 0 || !db.has(SettleToken))
			if settled[i].Fenced = !valid; valid {
				if err := db.settle(s, &o, now); err != nil {
					return err
				}
				continue
			}
			db.settleFenced(s, now)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	// The effect of outcomes on webhooks is stored afterwards, in a separate transaction.
	_ = db.tx(func() error {
		for i := range settlements {
			if !settled[i].Fenced && settlements[i].Breaker != nil {
				db.apply(&settlements[i])
			}
		}
		return nil
	})
	return settled, nil
}

func (db *Postgres) settle(s *dispatch.Settlement, o *OutboxRow, now time.Time) error {
	attempt := Attempt{Number: s.Attempt, Token: s.Token, Replica: s.Replica, StartedAt: o.BegunAt, FinishedAt: now, Verdict: s.Outcome.Verdict}
	if s.Decision.Status == notify.Retrying {
		o.DueAt, o.ReadyAt = now.Add(s.Decision.Wait), now.Add(s.Decision.Wait)
		o.Token, o.ClaimedBy = 0, ""
		if s.Decision.Counts {
			o.Counted++
		}
		if len(s.Outcome.Reached) > 0 {
			o.Reached = strings.Join(s.Outcome.Reached, "\n")
		}
		if b, rendered := db.bodies.get(o.ID); rendered && s.Outcome.Verdict == notify.VerdictNotMade && b.writtenAt.Equal(o.BegunAt) {
			db.bodies.remove(o.ID)
		}
		db.outbox.put(o.ID, *o)
		db.putAttempt(o.ID, attempt)
	} else {
		db.outbox.remove(o.ID)
		db.settlements.put(o.ID, Settlement{Status: s.Decision.Status, SettledAt: now, Attempt: attempt, Trail: true})
		if last, _ := db.lastAttempt.get(o.ID); s.Attempt > last {
			db.lastAttempt.put(o.ID, s.Attempt)
		}
	}
	if s.Decision.Disable {
		if err := db.switchOff(s, now); err != nil {
			return err
		}
	}
	if s.Decision.Status == failed || s.Decision.Status == exhausted {
		return db.undelivered(o.ID, now)
	}
	return nil
}

// referenceKey identifies an alert at a webhook.
type referenceKey struct{ alert, webhook uuid.UUID }

// keepReference stores the id that the receiver uses for an alert.
func (db *Postgres) keepReference(s *dispatch.Settlement) {
	if s.Reference == nil {
		return
	}
	key := referenceKey{s.Reference.AlertID, s.WebhookID}
	switch was, known := db.references.get(key); {
	case s.Reference.ID != "":
		db.references.put(key, s.Reference.ID)
	case known && was == s.Reference.Gone:
		db.references.remove(key)
	}
}

// settleFenced stores the outcome of a lost claim, and ends a message that has been delivered.
func (db *Postgres) settleFenced(s *dispatch.Settlement, now time.Time) {
	o, there := db.outbox.get(s.NotificationID)
	if s.Decision.Status == notify.Delivered && there && s.Attempt > o.BegunFrom && db.has(LateSuccess) {
		db.outbox.remove(o.ID)
		db.unknown(&o)
		db.settlements.put(o.ID, Settlement{Status: notify.Delivered, SettledAt: now, Trail: true})
	}
	if !db.notifications.has(s.NotificationID) {
		return
	}
	a, there := db.attempts.get(attemptKey{s.NotificationID, s.Attempt})
	if !there {
		a = Attempt{Number: s.Attempt, Token: s.Token, Replica: s.Replica, StartedAt: now.Add(-s.Outcome.Duration)}
	}
	a.FinishedAt, a.Verdict = now, s.Outcome.Verdict
	db.putAttempt(s.NotificationID, a)
}

// switchOff switches the webhook of a settlement off and notifies operators.
func (db *Postgres) switchOff(s *dispatch.Settlement, now time.Time) error {
	w := db.webhooks.rows[s.WebhookID]
	if !w.Enabled || w.Version != s.WebhookVersion {
		return nil
	}
	w.Enabled, w.DisabledReason = false, "gone"
	w.Version++
	db.webhooks.put(w.ID, w)
	return db.raiseIncident(w.ID, incidentOff, s.NotificationID, notify.ReasonWebhookOff, now)
}

// raiseIncident raises the alert of an incident, once.
func (db *Postgres) raiseIncident(webhook uuid.UUID, kind string, message uuid.UUID, reason notify.Reason, now time.Time) error {
	if db.incidents.has(incidentKey{webhook, kind}) {
		return nil
	}
	a := Alert{
		ID: db.newID(), RuleID: db.ruleOf(message), TenantID: db.webhooks.rows[webhook].TenantID, State: alerts.Firing, FiredAt: now,
		Health: true, WebhookID: webhook,
	}
	db.incidents.put(incidentKey{webhook, kind}, a.ID)
	db.putAlert(a)
	return db.notifyOperators(&a, reason, webhook, now, map[uuid.UUID]int{})
}

// ruleOf returns the rule of a message, or of a digest's first member.
func (db *Postgres) ruleOf(message uuid.UUID) uuid.UUID {
	if members, digest := db.digests.get(message); digest && len(members) > 0 {
		message = members[0]
	}
	return db.notifications.rows[message].RuleID
}

func (db *Postgres) endIncident(webhook uuid.UUID, kind string) {
	key := incidentKey{webhook, kind}
	if alert, there := db.incidents.get(key); there {
		db.incidents.remove(key)
		db.resolve(alert, db.now())
	}
}

// undelivered notifies operators of a message that failed or ran out of attempts.
func (db *Postgres) undelivered(message uuid.UUID, now time.Time) error {
	about := db.notifications.rows[message]
	if about.Reason == notify.ReasonUndelivered {
		return nil
	}
	alert := about.AlertID
	if members, digest := db.digests.get(message); digest {
		if len(members) == 0 {
			return nil
		}
		alert = db.notifications.rows[members[0]].AlertID
	}
	a := db.alerts.rows[alert]
	for _, id := range byID(&db.webhooks) {
		w := db.webhooks.rows[id]
		if !w.Operators || w.TenantID != about.TenantID || id == about.WebhookID {
			continue
		}
		n := Notification{
			ID: notify.ID(message, id, notify.ReasonUndelivered, db.retries.rows[message]), AlertID: alert, RuleID: a.RuleID, WebhookID: id,
			Reason: notify.ReasonUndelivered, About: message,
		}
		if db.notifications.has(n.ID) {
			continue
		}
		if err := db.notify(n, now); err != nil {
			return err
		}
	}
	return nil
}

// apply applies an outcome to breaker and hold of its webhook.
func (db *Postgres) apply(s *dispatch.Settlement) {
	w := db.webhooks.rows[s.WebhookID]
	if w.Version != s.WebhookVersion {
		return
	}
	now := db.now()
	was := w.Breaker
	was.HeldUntil = w.Webhook.HeldUntil
	probe := w.ProbeToken == s.Token && w.ProbeToken != 0
	if s.Outcome.Verdict == notify.VerdictDelivered && was.Failures == 0 && was.OpenedAt.IsZero() && was.Holds == 0 {
		return
	}
	next := s.Breaker(was, probe, now)
	w.Breaker = next
	if probe || next.OpenedAt.IsZero() && next.Holds == 0 {
		w.ProbeID, w.ProbeToken = uuid.Nil, 0
	}
	if next.HeldUntil.After(was.HeldUntil) {
		w.Webhook.HeldUntil = next.HeldUntil
	}
	db.webhooks.put(w.ID, w)
	if !was.OpenedAt.IsZero() && next.OpenedAt.IsZero() {
		db.endIncident(w.ID, incidentFailing)
	}
}

// ExpireHeld ends messages that have waited too long for webhooks whose receivers have asked for
// pauses for as long.
func (db *Postgres) ExpireHeld(after time.Duration) (ended int, err error) {
	err = db.tx(func() error {
		now := db.now()
		long := now.Add(-after)
		ids, rows := db.queue()
		for _, id := range ids {
			if w := db.webhooks.rows[id]; !w.Enabled || w.Holds == 0 || !w.HeldSince.Before(long) || !w.Webhook.HeldUntil.After(now) {
				continue
			}
			for _, o := range rows[id] {
				if !o.Since.Before(long) || o.claimed() && o.DueAt.After(now) {
					continue
				}
				db.outbox.remove(o.ID)
				db.unknown(&o)
				db.settlements.put(o.ID, Settlement{Status: exhausted, SettledAt: now, Trail: true})
				if err := db.undelivered(o.ID, now); err != nil {
					return err
				}
				ended++
			}
		}
		return nil
	})
	return ended, err
}

// NotifyOpenBreakers notifies operators of webhooks whose breaker has been open for too long, once
// each.
func (db *Postgres) NotifyOpenBreakers(openFor time.Duration) error {
	return db.tx(func() error {
		now := db.now()
		ids, rows := db.queue()
		for _, id := range ids {
			w := db.webhooks.rows[id]
			if !w.Enabled || w.OpenedAt.IsZero() || w.OpenedAt.After(now.Add(-openFor)) {
				continue
			}
			if err := db.raiseIncident(id, incidentFailing, rows[id][0].ID, notify.ReasonWebhookFailing, now); err != nil {
				return err
			}
		}
		return nil
	})
}
