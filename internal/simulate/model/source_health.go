package model

import (
	"context"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/notify"
)

// SourceFailed reports to the tenants of a partition that the source cannot be read, unless that was reported to them.
func (db *Postgres) SourceFailed(_ context.Context, id string, partition int, _ string) (notifications int, err error) {
	notified := map[uuid.UUID]int{}
	err = db.tx(func() error {
		now := db.now()
		for _, rule := range byID(&db.rules) {
			r := db.rules.rows[rule]
			if !r.Enabled || r.Deleted || db.PartitionOf(r.TenantID) != partition || db.sources.has(r.TenantID) {
				continue
			}
			db.sources.put(r.TenantID, announcement{id, now})
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

// SourceRecovered ends what was reported to the tenants of a partition.
func (db *Postgres) SourceRecovered(_ context.Context, partition int) (notifications int, err error) {
	notified := map[uuid.UUID]int{}
	err = db.tx(func() error {
		now := db.now()
		for _, alert := range byID(&db.alerts) {
			a := db.alerts.rows[alert]
			was, there := db.sources.get(a.TenantID)
			if !a.Source || !there || !a.FiredAt.Equal(was.since) || db.PartitionOf(a.TenantID) != partition {
				continue
			}
			a = db.resolve(alert, now)
			if err := db.notifyOperators(&a, notify.ReasonSourceRecovered, uuid.Nil, now, notified); err != nil {
				return err
			}
		}
		for tenant := range db.sources.rows {
			if db.PartitionOf(tenant) == partition {
				db.sources.remove(tenant)
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
