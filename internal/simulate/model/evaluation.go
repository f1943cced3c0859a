package model

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/evaluator"
	"tocsin/evaluator/ruleset"
	"tocsin/notify"
)

// silent reports whether a replica has a heartbeat that is too old, or of before the clock was set back.
func (db *Postgres) silent(id string, now time.Time) bool {
	r, known := db.replicas.get(id)
	return known && !db.alive(&r, now)
}

func (db *Postgres) alive(r *replica, now time.Time) bool {
	return r.beatAt.After(now.Add(-db.DeadAfter)) && !r.beatAt.After(now.Add(db.DeadAfter))
}

// Hold renews leases, gives up partitions above the fair share of the replica, and takes
// free ones below it.
func (db *Postgres) Hold(_ context.Context, request evaluator.HoldRequest) (evaluator.Holding, error) {
	now := db.now()
	holding := evaluator.Holding{Now: now}
	err := db.tx(func() error {
		if r, known := db.replicas.get(request.Replica); known && !r.evaluatedAt.After(now.Add(-request.LeaseFor/3)) {
			r.evaluatedAt = now
			db.replicas.put(request.Replica, r)
		}
		replicas, before := 1, 0
		for id, r := range db.replicas.rows {
			if id != request.Replica && r.evaluatedAt.After(now.Add(-request.LeaseFor)) && db.alive(&r, now) {
				replicas++
				if id < request.Replica {
					before++
				}
			}
		}
		numbers := sorted(&db.checkpoints)
		share := len(numbers) / replicas
		if before < len(numbers)%replicas {
			share++
		}
		held := 0
		for _, n := range numbers {
			if db.checkpoints.rows[n].Owner == request.Replica {
				held++
			}
		}
		surplus := held - share
		for _, n := range slices.Backward(numbers) {
			c := db.checkpoints.rows[n]
			switch {
			case c.Owner != request.Replica:
			case surplus > 0 && !slices.Contains(request.Busy, n):
				db.free(n)
				surplus--
				held--
			case c.LeaseUntil.Sub(now) < request.LeaseFor*2/3:
				c.LeaseUntil = now.Add(request.LeaseFor)
				db.checkpoints.put(n, c)
			}
		}
		for _, n := range numbers {
			c := db.checkpoints.rows[n]
			free := c.Owner == "" || c.Owner != request.Replica && (!c.LeaseUntil.After(now) || db.silent(c.Owner, now) || !db.has(LeaseExclusive))
			if free && held < share {
				held++
				if c.Owner, c.LeaseUntil = request.Replica, now.Add(request.LeaseFor); db.has(FreshToken) {
					c.Token = db.newToken()
				} else {
					c.Token = 1
				}
				db.checkpoints.put(n, c)
			}
		}
		for _, n := range numbers {
			if c := db.checkpoints.rows[n]; c.Owner == request.Replica {
				c.Cursor = position(c.Cursor)
				holding.Checkpoints = append(holding.Checkpoints, c.Checkpoint)
			}
		}
		for tenant := range db.sources.rows {
			holding.SourceFailed = append(holding.SourceFailed, db.PartitionOf(tenant))
		}
		return nil
	})
	return holding, err
}

// free ends the lease of a partition.
func (db *Postgres) free(n int) {
	c := db.checkpoints.rows[n]
	c.Owner, c.Token, c.LeaseUntil = "", 0, time.Time{}
	db.checkpoints.put(n, c)
}

// Release gives up partitions, and the share of a replica that is about to end.
func (db *Postgres) Release(_ context.Context, id string, partitions []int) error {
	return db.tx(func() error {
		for _, n := range partitions {
			if db.checkpoints.rows[n].Owner == id {
				db.free(n)
			}
		}
		if r, known := db.replicas.get(id); known {
			r.evaluatedAt = time.Time{}
			db.replicas.put(id, r)
		}
		return nil
	})
}

// Rules returns what changed in the rules of a partition after a rules revision.
func (db *Postgres) Rules(_ context.Context, partition int, after int64) (ruleset.Changed, error) {
	set := ruleset.Changed{Revision: db.checkpoints.rows[partition].RulesRevision}
	for _, id := range byID(&db.rules) {
		r := db.rules.rows[id]
		if db.PartitionOf(r.TenantID) != partition {
			continue
		}
		active := r.Enabled && !r.Deleted
		if b, there := db.backfills.get(id); there && active {
			b.Until = position(b.Until)
			set.Backfills = append(set.Backfills, b)
		}
		if p, there := db.replayOf(id); there && active {
			set.Replays = append(set.Replays, p.Replay)
		}
		switch {
		case r.Changed <= after:
		case active:
			rule := r.Rule
			rule.Former = slices.Clone(r.Former)
			stored := ruleset.Stored{Rule: rule, Problem: r.Problem}
			db.route(&stored)
			set.Rules = append(set.Rules, stored)
		case after > 0:
			set.Removed = append(set.Removed, id)
		}
	}
	return set, nil
}

// Commit writes a batch, or nothing.
func (db *Postgres) Commit(_ context.Context, b evaluator.Batch) (done evaluator.Committed, err error) {
	err = db.tx(func() (err error) {
		done, err = db.commit(&b)
		if err != nil && !db.has(CommitAtomic) {
			db.log.commit()
		}
		return err
	})
	if err != nil {
		return evaluator.Committed{}, err
	}
	return done, nil
}

func (db *Postgres) commit(b *evaluator.Batch) (evaluator.Committed, error) {
	now := db.now()
	c, there := db.checkpoints.get(b.Partition)
	switch {
	case !there,
		c.Token != b.Token && db.has(CommitToken),
		c.Revision != b.Revision && db.has(CommitRevision),
		c.RulesRevision != b.RulesRevision && db.has(CommitRules):
		return evaluator.Committed{}, evaluator.ErrStale
	}
	c.Cursor, c.Backfill, c.Watch, c.ClockOffset = position(b.Cursor), b.Backfill, b.Watch, b.ClockOffset
	c.Revision++
	c.LeaseUntil = now.Add(b.LeaseFor)
	db.checkpoints.put(b.Partition, c)
	done := evaluator.Committed{Revision: c.Revision, Notifications: map[uuid.UUID]int{}}
	inserted := map[uuid.UUID]bool{}
	for i := range b.Instances {
		fresh, err := db.insertAlert(&b.Instances[i], now)
		if err != nil {
			return done, err
		}
		if fresh {
			inserted[b.Instances[i].ID] = true
			done.Inserted = append(done.Inserted, b.Instances[i].ID)
		}
	}
	db.startEscalations(b, inserted)
	silenced := db.silenced(b.Instances, now)
	for i := range b.Notifications {
		n := &b.Notifications[i]
		if inserted[n.AlertID] || !db.has(KnownNotNotified) && db.alerts.has(n.AlertID) {
			if err := db.notify(Notification{
				ID: n.ID, AlertID: n.AlertID, RuleID: n.RuleID, WebhookID: n.WebhookID, TenantID: n.TenantID, Reason: n.Reason,
			}, now); err != nil {
				return done, err
			}
			if by, is := silenced[n.AlertID]; is {
				db.suppress(n.ID, by, now)
				done.Suppressed++
				continue
			}
			if b.Replay != nil && b.Replay.Messages == ruleset.ReplayDigest {
				db.gatherReplayed(b.Replay, n, now)
				continue
			}
			if b.Replay == nil && db.quiet(n.ID, now) {
				continue
			}
			done.Notifications[n.WebhookID]++
		}
	}
	if err := db.advanceReplay(b.Replay, &done); err != nil {
		return done, err
	}
	if err := db.applyChanges(b.Changes, now, &done); err != nil {
		return done, err
	}
	for _, f := range b.Backfills {
		if f.Done() {
			db.backfills.remove(f.RuleID)
			continue
		}
		f.Until = position(f.Until)
		db.backfills.put(f.RuleID, f)
	}
	return done, db.commitHealth(b, now, done.Notifications)
}

// insertAlert inserts an alert, unless it exists or retention has deleted those of its time.
func (db *Postgres) insertAlert(a *alerts.Instance, now time.Time) (fresh bool, err error) {
	if db.Refuses != nil && db.Refuses(a) {
		return false, evaluator.ErrRefused
	}
	key := onceKey{a.RuleID, a.Exchange.Key()}
	if db.has(RetentionObeyed) && a.Exchange.StartTimeNS < db.rules.rows[a.RuleID].RetentionFloorNS {
		return false, nil
	}
	if db.once.has(key) && db.has(AlertOnce) {
		return false, nil
	}
	if db.alerts.has(a.ID) {
		if !db.has(AlertOnce) {
			a.ID = db.newID()
		} else {
			return false, evaluator.ErrRefused
		}
	}
	db.once.put(key, a.ID)
	db.putAlert(Alert{
		ID: a.ID, RuleID: a.RuleID, TenantID: a.TenantID, RuleVersion: a.RuleVersion, Key: key.key, StartNS: a.Exchange.StartTimeNS,
		State: alerts.Firing, FiredAt: now, Late: a.Late, Routing: a.Routing, Severity: a.Severity, Exchange: new(a.Exchange),
	})
	return true, nil
}

// notify writes a notification and puts it into the outbox.
func (db *Postgres) notify(n Notification, now time.Time) error {
	w, there := db.webhooks.get(n.WebhookID)
	key := notificationKey{n.AlertID, n.WebhookID, n.Reason, n.Generation}
	if !there || n.About == uuid.Nil && db.notifiedOnce.has(key) || db.notifications.has(n.ID) {
		return evaluator.ErrRefused
	}
	if n.About == uuid.Nil {
		db.notifiedOnce.put(key, n.ID)
	}
	n.TenantID, n.CreatedAt = w.TenantID, now
	of, _ := db.ofAlert.get(n.AlertID)
	db.notifications.put(n.ID, n)
	db.ofAlert.put(n.AlertID, append(slices.Clip(of), n.ID))
	db.outbox.put(n.ID, OutboxRow{ID: n.ID, WebhookID: n.WebhookID, DueAt: now, ReadyAt: now, Since: now})
	return nil
}

// commitHealth records what is wrong with rules, and announces once that one fails, and that it
// does no longer.
func (db *Postgres) commitHealth(b *evaluator.Batch, now time.Time, notified map[uuid.UUID]int) error {
	for _, id := range sortedIDs(b.Health) {
		r, h := db.rules.rows[id], b.Health[id]
		db.problem(id, h.Problem)
		var a Alert
		announced, reason := db.failing.has(id), notify.ReasonRuleFailing
		switch {
		case h.Failed == announced:
			continue
		case h.Failed:
			a = Alert{ID: db.newID(), RuleID: id, TenantID: r.TenantID, RuleVersion: r.Version, State: alerts.Firing, FiredAt: now, Health: true}
			db.putAlert(a)
			db.failing.put(id, a.ID)
		default:
			a, reason = db.endFailing(id, now), notify.ReasonRuleRecovered
		}
		if err := db.notifyOperators(&a, reason, uuid.Nil, now, notified); err != nil {
			return err
		}
	}
	return nil
}

func sortedIDs[V any](m map[uuid.UUID]V) []uuid.UUID {
	t := table[uuid.UUID, V]{rows: m}
	return byID(&t)
}

func (db *Postgres) problem(id uuid.UUID, text string) {
	if r, there := db.rules.get(id); there {
		r.Problem = text
		db.rules.put(id, r)
	}
}

// endFailing ends the failing of a rule that was announced, and resolves its alert.
func (db *Postgres) endFailing(id uuid.UUID, now time.Time) Alert {
	alert := db.failing.rows[id]
	db.failing.remove(id)
	return db.resolve(alert, now)
}

func (db *Postgres) resolve(id uuid.UUID, now time.Time) Alert {
	a := db.alerts.rows[id]
	if a.State != alerts.Resolved {
		a.State, a.ResolvedAt = alerts.Resolved, now
		db.putAlert(a)
	}
	return a
}

// notifyOperators writes a notification about an alert for each webhook of operators.
func (db *Postgres) notifyOperators(a *Alert, reason notify.Reason, except uuid.UUID, now time.Time, notified map[uuid.UUID]int) error {
	for _, id := range byID(&db.webhooks) {
		w := db.webhooks.rows[id]
		if !w.Operators || w.TenantID != a.TenantID || id == except {
			continue
		}
		n := Notification{ID: notify.ID(a.ID, id, reason, 0), AlertID: a.ID, RuleID: a.RuleID, WebhookID: id, Reason: reason}
		if err := db.notify(n, now); err != nil {
			return err
		}
		if !db.quiet(n.ID, now) {
			notified[id]++
		}
	}
	return nil
}
