package model

import (
	"context"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/notify"
)

const sourceSubject = "source"

// SourceFailed reports that the source cannot be read, unless another replica has.
func (db *Postgres) SourceFailed(_ context.Context, id, _ string) (notifications int, err error) {
	notified := map[uuid.UUID]int{}
	err = db.tx(func() error {
		now := db.now()
		if db.sources.has(sourceSubject) {
			return nil
		}
		db.sources.put(sourceSubject, announcement{id, now})
		tenants := map[string]bool{}
		for _, rule := range byID(&db.rules) {
			r := db.rules.rows[rule]
			if !r.Enabled || r.Deleted || tenants[r.TenantID] {
				continue
			}
			tenants[r.TenantID] = true
			a := Alert{ID: db.newID(), RuleID: rule, TenantID: r.TenantID, RuleVersion: r.Version, State: alerts.Firing, FiredAt: now, Health: true, Source: true}
			db.putAlert(a)
			if err := db.notifyOperators(&a, notify.ReasonSourceFailing, uuid.Nil, now, notified); err != nil {
				return err
			}
		}
		return nil
	})
	return total(notified), err
}

// SourceRecovered ends what this replica, or one that is dead, has reported.
func (db *Postgres) SourceRecovered(_ context.Context, id string) (notifications int, err error) {
	notified := map[uuid.UUID]int{}
	err = db.tx(func() error {
		now := db.now()
		was, there := db.sources.get(sourceSubject)
		if !there || !db.mayEnd(was, id, now) {
			return nil
		}
		db.sources.remove(sourceSubject)
		for _, alert := range byID(&db.alerts) {
			a := db.alerts.rows[alert]
			if !a.Source || !a.FiredAt.Equal(was.since) {
				continue
			}
			a = db.resolve(alert, now)
			if err := db.notifyOperators(&a, notify.ReasonSourceRecovered, uuid.Nil, now, notified); err != nil {
				return err
			}
		}
		return nil
	})
	return total(notified), err
}

func total(notified map[uuid.UUID]int) (sum int) {
	for _, n := range notified {
		sum += n
	}
	return sum
}
