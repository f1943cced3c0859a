package model

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts/silences"
	"tocsin/notify"
	"tocsin/rules"
)

// Silence is the row of a silence.
type Silence struct {
	silences.Silence

	// Digests says when its next digests are due, and what they list.
	Digests silences.DigestPlan
}

// replan returns the plan of a silence after a change.
func (s *Silence) replan(was *Silence, now time.Time) silences.DigestPlan {
	c, err := silences.Compile(&s.Silence)
	if err != nil {
		return silences.DigestPlan{}
	}
	if was == nil {
		return c.PlanDigests(nil, silences.DigestPlan{}, now)
	}
	before, _ := silences.Compile(&was.Silence)
	return c.PlanDigests(before, was.Digests, now)
}

// SilencesToDigest returns the silences whose digests are due.
func (db *Postgres) SilencesToDigest() (list []uuid.UUID) {
	now := db.now()
	for _, id := range byID(&db.silences) {
		if at := db.silences.rows[id].Digests.At; at != nil && !at.After(now) {
			list = append(list, id)
		}
	}
	return list
}

// DigestSilence writes the digests of a silence that are due. It returns how many are to be sent, by
// webhook.
func (db *Postgres) DigestSilence(id uuid.UUID) (due map[uuid.UUID]int, err error) {
	err = db.tx(func() error {
		due = map[uuid.UUID]int{}
		now := db.now()
		for db.digestSilence(id, now, due) {
		}
		return nil
	})
	return due, err
}

// digestSilence writes the digests of one end, and reports whether they were due.
func (db *Postgres) digestSilence(id uuid.UUID, now time.Time, due map[uuid.UUID]int) bool {
	s, there := db.silences.get(id)
	if !there || s.Digests.At == nil || s.Digests.At.After(now) {
		return false
	}
	from, until := s.Digests.From, *s.Digests.At
	inForce := from
	plan := silences.DigestPlan{From: until}
	if c, err := silences.Compile(&s.Silence); err == nil {
		inForce = c.DigestedFrom(s.Digests)
		if db.has(SilenceDigestsRecur) {
			plan = c.AfterDigests(until)
		}
	}
	of := db.silencedFor(id, from, until)
	for _, webhook := range sortedIDs(of) {
		members := of[webhook]
		digest := notify.ID(id, webhook, notify.ReasonDigest, int(until.UnixMicro()))
		w := db.webhooks.rows[webhook]
		if db.notifications.has(digest) {
			continue
		}
		o := OutboxRow{ID: digest, WebhookID: webhook, DueAt: now, ReadyAt: now, Since: now, Digest: true}
		critical := slices.ContainsFunc(members, func(m uuid.UUID) bool {
			return db.alerts.rows[db.notifications.rows[m].AlertID].Severity == rules.Critical
		})
		if end := w.QuietHours.Until(now); end.After(now) && !critical && db.has(QuietHeld) {
			o.QuietUntil = end
		} else if due != nil {
			due[webhook]++
		}
		for _, m := range members {
			db.listedIn.put(m, digest)
		}
		db.notifications.put(digest, Notification{
			ID: digest, WebhookID: webhook, TenantID: w.TenantID, Reason: notify.ReasonDigest, CreatedAt: now,
			Silence: id, SilencedFrom: inForce, SilencedUntil: until,
		})
		db.digests.put(digest, members)
		db.outbox.put(digest, o)
	}
	s.Digests = plan
	db.silences.put(id, s)
	return true
}

// silencedFor returns what a silence suppressed in a time range and no digest lists, by webhook.
func (db *Postgres) silencedFor(id uuid.UUID, from, until time.Time) map[uuid.UUID][]uuid.UUID {
	list := map[uuid.UUID][]uuid.UUID{}
	for _, m := range byID(&db.settlements) {
		t := db.settlements.rows[m]
		late := !t.SettledAt.Before(until) && db.has(SilenceDigestsEnd)
		early := t.SettledAt.Before(from)
		if t.Silence != id || late || early || db.listedIn.has(m) {
			continue
		}
		webhook := db.notifications.rows[m].WebhookID
		list[webhook] = append(list[webhook], m)
	}
	return list
}

// releaseDigests puts the digests of silences into the queue that quiet hours have held for a webhook
// until now.
func (db *Postgres) releaseDigests(webhook uuid.UUID, now time.Time) (released int) {
	for _, id := range byID(&db.outbox) {
		if o := db.outbox.rows[id]; o.WebhookID == webhook && o.Digest && o.over(now) {
			o.QuietUntil, o.ReadyAt, o.DueAt, o.Since = time.Time{}, now, now, now
			db.outbox.put(id, o)
			released++
		}
	}
	return released
}

// ReleaseQuietDigests does that in a transaction.
func (db *Postgres) ReleaseQuietDigests(webhook uuid.UUID) (released int, err error) {
	err = db.tx(func() error {
		released = db.releaseDigests(webhook, db.now())
		return nil
	})
	return released, err
}

// SilencePlan returns which digests of a silence come next.
func (db *Postgres) SilencePlan(id uuid.UUID) silences.DigestPlan {
	return db.silences.rows[id].Digests
}

// ListedIn returns the digest of a silence that lists a message, or [uuid.Nil].
func (db *Postgres) ListedIn(id uuid.UUID) uuid.UUID { return db.listedIn.rows[id] }
