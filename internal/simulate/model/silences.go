package model

import (
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/alerts/match"
	"tocsin/alerts/silences"
)

// silenced returns for what a commit raises about exchanges the active silence that suppresses its messages.
func (db *Postgres) silenced(instances []alerts.Instance, now time.Time) map[uuid.UUID]uuid.UUID {
	by := map[uuid.UUID]uuid.UUID{}
	for i := range instances {
		a := &instances[i]
		subject := match.Subject{RuleID: a.RuleID, Severity: a.Severity, Labels: db.rules.rows[a.RuleID].Labels, Exchange: &a.Exchange}
		if silence, is := db.suppressing(a.TenantID, &subject, now); is {
			by[a.ID] = silence
		}
	}
	return by
}

// silencedAlert returns the active silence that suppresses messages about an alert.
func (db *Postgres) silencedAlert(a *Alert, now time.Time) (by uuid.UUID, is bool) {
	r := db.rules.rows[a.RuleID]
	subject := match.Subject{RuleID: a.RuleID, Severity: a.Severity, Labels: r.Labels, Exchange: a.Exchange}
	if a.Window {
		subject.Count = &alerts.Count{Group: a.Group, GroupBy: r.GroupBy, GroupByAttribute: r.GroupByAttribute}
		subject.Scope, subject.ErrorTypes = r.Scope, r.Filter.ErrorTypes
	} else if a.Exchange == nil {
		return uuid.Nil, false
	}
	return db.suppressing(a.TenantID, &subject, now)
}

// suppressing returns the active silence of a tenant that suppresses messages about a subject.
func (db *Postgres) suppressing(tenant string, subject *match.Subject, now time.Time) (by uuid.UUID, is bool) {
	if !db.has(SilencesObeyed) {
		return uuid.Nil, false
	}
	var inForce []*silences.Compiled
	for _, id := range byID(&db.silences) {
		s := db.silences.rows[id]
		if s.TenantID != tenant && db.has(SilencesTenant) {
			continue
		}
		if !db.has(SilencesEnd) {
			s.EndedAt = nil
		}
		if c, err := silences.Compile(&s.Silence); err == nil {
			inForce = append(inForce, c)
		}
	}
	if c := silences.Suppressing(silences.InForce(inForce, now), subject); c != nil {
		return c.ID, true
	}
	return uuid.Nil, false
}

// suppress settles a message that has just been written.
func (db *Postgres) suppress(id, by uuid.UUID, now time.Time) {
	db.outbox.remove(id)
	db.settlements.put(id, Settlement{Status: suppressed, SettledAt: now, Silence: by})
}

// CreateSilence stores a silence, which begins now at the earliest.
func (db *Postgres) CreateSilence(tenant string, id uuid.UUID, d silences.Definition) error {
	return db.tx(func() error {
		now := db.now()
		if d.StartsAt.Before(now) {
			d.StartsAt = now
		}
		if d.EndsAt != nil && !d.EndsAt.After(d.StartsAt) {
			return ErrConflict
		}
		s := Silence{Silence: silences.Silence{Definition: d, ID: id, TenantID: tenant, Version: 1, CreatedAt: now}}
		s.Digests = s.replan(nil, d.StartsAt)
		db.silences.put(id, s)
		return nil
	})
}

// EndSilence ends a silence early.
func (db *Postgres) EndSilence(id uuid.UUID) error {
	return db.changeSilence(id, func(s *Silence, now time.Time) { s.EndedAt = &now })
}

// UpdateSilence replaces the definition of a silence that is not over, except for its start.
func (db *Postgres) UpdateSilence(id uuid.UUID, d silences.Definition) error {
	return db.changeSilence(id, func(s *Silence, _ time.Time) {
		d.StartsAt = s.StartsAt
		s.Definition = d
	})
}

// changeSilence writes the digests that are due, changes a silence that is not over, and plans its
// next digests.
func (db *Postgres) changeSilence(id uuid.UUID, change func(s *Silence, now time.Time)) error {
	return db.tx(func() error {
		now := db.now()
		for db.digestSilence(id, now, nil) {
		}
		s, there := db.silences.get(id)
		if over := s.Over(); !there || over != nil && !over.After(now) {
			return ErrConflict
		}
		was := s
		change(&s, now)
		s.Version++
		if db.has(SilenceDigestsPlanned) {
			s.Digests = s.replan(&was, now)
		}
		db.silences.put(id, s)
		return nil
	})
}

// Silence returns a silence.
func (db *Postgres) Silence(id uuid.UUID) (silences.Silence, bool) {
	s, there := db.silences.get(id)
	return s.Silence, there
}
