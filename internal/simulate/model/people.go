package model

import (
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/cursor"
	"tocsin/evaluator/backlog"
	"tocsin/evaluator/ruleset"
	"tocsin/rules"
)

// ErrConflict is returned for a request that is not possible in the present state.
var ErrConflict = errors.New("not now")

// change begins a change of a tenant's rules, and returns its rules revision and instant.
func (db *Postgres) change(tenant string) (revision, nowNS int64, err error) {
	n := db.PartitionOf(tenant)
	c, there := db.checkpoints.get(n)
	if !there {
		return 0, 0, errNoPartition
	}
	at := db.now()
	c.RulesRevision = max(c.RulesRevision+1, at.UnixMicro())
	db.checkpoints.put(n, c)
	nowNS = at.UnixNano()
	if db.has(ArmedBySource) {
		nowNS += min(c.ClockOffset.Nanoseconds(), 0)
	}
	return c.RulesRevision, nowNS, nil
}

// arm arms a rule again.
func (db *Postgres) arm(r *Rule, nowNS int64) {
	db.backfills.remove(r.ID)
	db.dropPending(r.ID)
	r.Problem = ""
	if !r.Enabled {
		return
	}
	r.ArmedSinceNS, r.Former = nowNS, nil
	if r.FireMode == rules.PerExchange && db.has(OwnBeginning) {
		back := int64(r.LookBackSeconds) * int64(time.Second)
		db.backfills.put(r.ID, ruleset.Backfill{RuleID: r.ID, At: cursor.Position{StartTimeNS: nowNS - back - backlog.WaitNS(back)}})
	}
}

// CreateRule stores a rule, armed from now on.
func (db *Postgres) CreateRule(tenant string, id uuid.UUID, d rules.Definition) (rules.Rule, error) {
	var r Rule
	err := db.tx(func() error {
		revision, nowNS, err := db.change(tenant)
		if err != nil {
			return err
		}
		r = Rule{Rule: rules.Rule{Definition: d, ID: id, TenantID: tenant, Version: 1, ArmedSinceNS: nowNS}, Changed: revision}
		db.arm(&r, nowNS)
		db.rules.put(id, r)
		return nil
	})
	return r.Rule, err
}

// edit changes a rule in a transaction.
func (db *Postgres) edit(id uuid.UUID, f func(r *Rule, nowNS int64) error) (rules.Rule, error) {
	var r Rule
	err := db.tx(func() error {
		was, there := db.rules.get(id)
		if !there || was.Deleted {
			return ErrConflict
		}
		revision, nowNS, err := db.change(was.TenantID)
		if err != nil {
			return err
		}
		r = was
		r.Changed = revision
		if db.failing.has(id) {
			db.endFailing(id, db.now())
		}
		if b, there := db.backfills.get(id); there && b.Failing {
			b.Failing, b.Refused = false, nil
			db.backfills.put(id, b)
		}
		if err := f(&r, nowNS); err != nil {
			return err
		}
		db.rules.put(id, r)
		return nil
	})
	return r.Rule, err
}

// UpdateRule replaces a definition.
func (db *Postgres) UpdateRule(id uuid.UUID, d rules.Definition) (rules.Rule, error) {
	return db.edit(id, func(r *Rule, nowNS int64) error {
		was := r.Definition
		r.Definition = d
		r.Version++
		if was.Enabled != d.Enabled || was.FireMode != d.FireMode {
			db.endReplay(r.ID, ReplayStopped)
			db.arm(r, nowNS)
			return nil
		}
		if d.Enabled && r.FireMode == rules.PerExchange && d.LookBackSeconds > was.LookBackSeconds {
			db.lengthen(r, was.LookBackSeconds)
		}
		r.Problem = ""
		if !was.Enabled || reflect.DeepEqual(was.Scope, d.Scope) && reflect.DeepEqual(was.Filter, d.Filter) {
			return nil
		}
		db.endReplay(r.ID, ReplayStopped)
		ended := rules.Era{Scope: was.Scope, Filter: was.Filter, FromNS: r.ArmedSinceNS, ToNS: max(nowNS, r.ArmedSinceNS)}
		if db.has(FormerConditions) {
			r.Former = append(slices.Clone(r.Former), ended)
		}
		r.ArmedSinceNS = ended.ToNS
		return nil
	})
}

// lengthen lets a rule whose look-back becomes longer read the additional range.
func (db *Postgres) lengthen(r *Rule, was int) {
	c := db.checkpoints.rows[db.PartitionOf(r.TenantID)]
	if !db.has(LongerLookBack) {
		return
	}
	if c.Cursor == nil {
		// Nothing was read since the rule was armed: its own progress begins as much earlier.
		if b, own := db.backfills.get(r.ID); own {
			reach := func(seconds int) int64 {
				back := int64(seconds) * int64(time.Second)
				return back + backlog.WaitNS(back)
			}
			b.At = cursor.Position{StartTimeNS: b.At.StartTimeNS - reach(r.LookBackSeconds) + reach(was)}
			db.backfills.put(r.ID, b)
		}
		return
	}
	base := c.Cursor.StartTimeNS
	if c.Backfill != nil {
		base = min(base, c.Backfill.CursorNS)
	}
	back := int64(r.LookBackSeconds) * int64(time.Second)
	b, own := db.backfills.get(r.ID)
	at := cursor.Position{StartTimeNS: base - back - backlog.WaitNS(back)}
	if !own || b.At.After(at) {
		b.At = at
	}
	b.RuleID, b.Until = r.ID, nil
	db.backfills.put(r.ID, b)
}

// EnableRule enables or disables a rule.
func (db *Postgres) EnableRule(id uuid.UUID, enabled bool) (rules.Rule, error) {
	return db.edit(id, func(r *Rule, nowNS int64) error {
		if r.Enabled == enabled {
			return ErrConflict
		}
		r.Enabled = enabled
		r.Version++
		db.endReplay(r.ID, ReplayStopped)
		db.arm(r, nowNS)
		return nil
	})
}

// RetryRule resets the failures of a rule.
func (db *Postgres) RetryRule(id uuid.UUID) (rules.Rule, error) {
	return db.edit(id, func(r *Rule, _ int64) error {
		if !r.Enabled {
			return ErrConflict
		}
		r.Problem = ""
		return nil
	})
}

// RetryNotification sends a message again.
func (db *Postgres) RetryNotification(id uuid.UUID) error {
	return db.tx(func() error {
		now := db.now()
		n, there := db.notifications.get(id)
		if w := db.webhooks.rows[n.WebhookID]; !there || !w.Enabled {
			return ErrConflict
		}
		if digest, in := db.digestOf.get(id); in {
			if db.settlements.has(digest) {
				db.leave(id, digest)
				db.enqueue(n, now, true)
				return nil
			}
			id = digest
			n = db.notifications.rows[id]
		}
		if s, ended := db.settlements.get(id); ended {
			return db.revive(n, &s, now)
		}
		o, waiting := db.outbox.get(id)
		switch {
		case !waiting || o.Token != 0 && o.DueAt.After(now) && db.has(RetryLeavesClaims):
			return ErrConflict
		case o.Attempts <= o.BegunFrom && (o.QuietUntil.IsZero() || db.waits(id)):
			return nil
		}
		quiet, notified := !o.QuietUntil.IsZero(), db.notified(n.AlertID, n.WebhookID)
		o.QuietUntil, o.ExpiresAt = time.Time{}, time.Time{}
		db.unknown(&o)
		o.Generation++
		o.DueAt, o.ReadyAt, o.Since, o.Counted, o.BegunFrom, o.Alone = now, now, now, 0, o.Attempts, true
		o.Token, o.ClaimedBy, o.BegunAt = 0, "", time.Time{}
		db.outbox.put(id, o)
		db.retries.put(id, o.Generation)
		if b, rendered := db.bodies.get(id); rendered && b.problem != "" {
			db.bodies.remove(id)
		}
		if a, there := db.alerts.get(n.AlertID); there && quiet {
			db.countFromNow(&a, !notified, now)
		}
		return nil
	})
}

// revive puts a settled message back into the outbox.
func (db *Postgres) revive(n Notification, s *Settlement, now time.Time) error {
	if members, digest := db.digests.get(n.ID); digest && len(members) == 0 {
		return ErrConflict
	}
	db.settlements.remove(n.ID)
	if s.Attempt.Number > 0 {
		db.putAttempt(n.ID, s.Attempt)
	}
	refused := s.Attempt.Verdict
	if refused == 0 {
		last, _ := db.lastAttempt.get(n.ID)
		for number := last; number > 0 && refused == 0; number-- {
			refused = db.attempts.rows[attemptKey{n.ID, number}].Verdict
		}
	}
	if b, rendered := db.bodies.get(n.ID); rendered && (b.problem != "" || refused.String() == "REFUSED") {
		db.bodies.remove(n.ID)
	}
	db.enqueue(n, now, true)
	return nil
}

// enqueue puts a message into the outbox with its next generation.
func (db *Postgres) enqueue(n Notification, now time.Time, alone bool) {
	generation, _ := db.retries.get(n.ID)
	attempts, _ := db.lastAttempt.get(n.ID)
	db.retries.put(n.ID, generation+1)
	_, digest := db.digests.get(n.ID)
	db.outbox.put(n.ID, OutboxRow{
		ID: n.ID, WebhookID: n.WebhookID, DueAt: now, ReadyAt: now, Since: now, Attempts: attempts, BegunFrom: attempts,
		Generation: generation + 1, Digest: digest, Alone: alone,
	})
}

// unlist removes a notification from the digest of a silence that lists it.
func (db *Postgres) unlist(id uuid.UUID) {
	if digest, listed := db.listedIn.get(id); listed {
		db.listedIn.remove(id)
		db.leave(id, digest)
	}
}

// leave removes a notification from a digest.
func (db *Postgres) leave(id, digest uuid.UUID) {
	db.digestOf.remove(id)
	members, _ := db.digests.get(digest)
	db.digests.put(digest, slices.DeleteFunc(slices.Clone(members), func(m uuid.UUID) bool { return m == id }))
}

// DiscardNotification discards a message.
func (db *Postgres) DiscardNotification(id uuid.UUID) error {
	return db.tx(func() error {
		now := db.now()
		if !db.notifications.has(id) {
			return ErrConflict
		}
		if digest, in := db.digestOf.get(id); in {
			id = digest
		}
		if s, ended := db.settlements.get(id); ended {
			if s.Status != failed && s.Status != exhausted {
				return ErrConflict
			}
			s.Status = discarded
			db.settlements.put(id, s)
			return nil
		}
		o, waiting := db.outbox.get(id)
		if !waiting || o.Token != 0 && o.DueAt.After(now) {
			return ErrConflict
		}
		db.outbox.remove(id)
		db.unknown(&o)
		db.settlements.put(id, Settlement{Status: discarded, SettledAt: now, Trail: true})
		return nil
	})
}

// CreateWebhook stores a webhook.
func (db *Postgres) CreateWebhook(w Webhook) error {
	return db.tx(func() error {
		w.Version = 1
		db.webhooks.put(w.ID, w)
		return nil
	})
}

// EnableWebhook enables a webhook, which ends a hold, or disables it.
func (db *Postgres) EnableWebhook(id uuid.UUID, enabled bool) error {
	return db.editWebhook(id, func(w *Webhook) bool {
		changes := w.Enabled != enabled || enabled && w.Webhook.HeldUntil.After(db.now())
		w.Enabled = enabled
		return changes
	})
}

// EditWebhook makes an edit that does not change where messages go.
func (db *Postgres) EditWebhook(id uuid.UUID) error {
	return db.editWebhook(id, func(*Webhook) bool { return true })
}

func (db *Postgres) editWebhook(id uuid.UUID, f func(w *Webhook) (changes bool)) error {
	return db.tx(func() error {
		w, there := db.webhooks.get(id)
		if !there {
			return ErrConflict
		}
		if f(&w) {
			w.Version++
		}
		w.forget()
		if w.Enabled {
			w.Webhook.HeldUntil, w.DisabledReason = time.Time{}, ""
		}
		db.webhooks.put(id, w)
		kinds := []string{incidentFailing}
		if w.Enabled {
			kinds = append(kinds, incidentOff)
		}
		for _, kind := range kinds {
			db.endIncident(id, kind)
		}
		return nil
	})
}

// forget resets what attempts have shown about the webhook.
func (w *Webhook) forget() {
	w.Failures, w.Openings, w.OpenedAt, w.Until, w.LastError, w.LastErrorAt = 0, 0, time.Time{}, time.Time{}, "", time.Time{}
	w.Holds, w.HeldFor, w.ProbeID, w.ProbeToken = 0, 0, uuid.Nil, 0
}
