package model

import (
	"context"
	"time"

	"tocsin/internal/lease"
)

// Beat writes a heartbeat.
func (db *Postgres) Beat(_ context.Context, r lease.Replica) error {
	return db.tx(func() error {
		row, _ := db.replicas.get(r.ID)
		row.beatAt = db.now()
		db.replicas.put(r.ID, row)
		return nil
	})
}

// ReleaseDead releases what dead replicas hold, and deletes the rows of replicas that have been dead for
// long.
func (db *Postgres) ReleaseDead(_ context.Context, request lease.DeadRequest) (result lease.DeadResult, err error) {
	err = db.tx(func() error {
		now := db.now()
		for _, id := range sorted(&db.replicas) {
			r := db.replicas.rows[id]
			silent := now.Sub(r.beatAt)
			if id != request.Self && silent < -request.DeadAfter {
				r.beatAt = now
				db.replicas.put(id, r)
			}
			if id == request.Self || silent < request.DeadAfter {
				continue
			}
			if released := db.releaseHeld(id, now); released.Partitions+released.Notifications > 0 {
				result.Released = append(result.Released, released)
			}
			if silent >= request.ForgetAfter {
				db.replicas.remove(id)
				result.Forgotten++
			}
		}
		return nil
	})
	return result, err
}

// Leave releases what a replica holds and deletes its row.
func (db *Postgres) Leave(_ context.Context, id string) (released lease.Released, err error) {
	err = db.tx(func() error {
		released = db.releaseHeld(id, db.now())
		db.replicas.remove(id)
		return nil
	})
	return released, err
}

func (db *Postgres) releaseHeld(id string, now time.Time) lease.Released {
	released := lease.Released{Replica: id}
	for _, n := range sorted(&db.checkpoints) {
		if db.checkpoints.rows[n].Owner == id {
			db.free(n)
			released.Partitions++
		}
	}
	for _, n := range byID(&db.outbox) {
		o := db.outbox.rows[n]
		if o.ClaimedBy != id {
			continue
		}
		db.unknown(&o)
		if o.DueAt.After(now) {
			o.DueAt = now
		}
		if o.ReadyAt.After(now) {
			o.ReadyAt = now
		}
		o.Token, o.ClaimedBy, o.BegunAt = 0, "", time.Time{}
		db.outbox.put(n, o)
		released.Notifications++
	}
	return released
}
