package model

import (
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/alerts/match"
	"tocsin/alerts/silences"
)

// silenced returns for alerts of PER_EXCHANGE rules the active silence that suppresses their
// messages. Those of window rules are not silenced in the model; the tests on Postgres cover them.
func (db *Postgres) silenced(instances []alerts.Instance, now time.Time) map[uuid.UUID]uuid.UUID {
	if !db.has(SilencesObeyed) || len(db.silences.rows) == 0 {
		return nil
	}
	ofTenant := map[string][]*silences.Compiled{}
	for _, id := range byID(&db.silences) {
		s := db.silences.rows[id]
		if !db.has(SilencesEnd) {
			s.EndedAt = nil
		}
		if c, err := silences.Compile(&s.Silence); err == nil {
			ofTenant[s.TenantID] = append(ofTenant[s.TenantID], c)
			if !db.has(SilencesTenant) {
				ofTenant[""] = append(ofTenant[""], c)
			}
		}
	}
	by := map[uuid.UUID]uuid.UUID{}
	for i := range instances {
		a := &instances[i]
		tenant := a.TenantID
		if !db.has(SilencesTenant) {
			tenant = ""
		}
		r := db.rules.rows[a.RuleID]
		subject := match.Subject{RuleID: a.RuleID, Severity: a.Severity, Labels: r.Labels, Exchange: &a.Exchange}
		if c := silences.Suppressing(silences.InForce(ofTenant[tenant], now), &subject); c != nil {
			by[a.ID] = c.ID
		}
	}
	return by
}

// silencedAlert returns the active silence that suppresses messages about an alert.
func (db *Postgres) silencedAlert(a *Alert, now time.Time) (by uuid.UUID, is bool) {
	if a.Exchange == nil {
		return uuid.Nil, false
	}
	of := []alerts.Instance{{ID: a.ID, RuleID: a.RuleID, TenantID: a.TenantID, Severity: a.Severity, Exchange: *a.Exchange}}
	by, is = db.silenced(of, now)[a.ID]
	return by, is
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
