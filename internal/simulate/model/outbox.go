package model

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/notify/dispatch"
)

const (
	failed    = notify.Failed
	exhausted = notify.Exhausted
	discarded = notify.Discarded

	suppressed = notify.Suppressed
)

// queue returns the rows of the outbox by webhook, each in the order in which they are sent, except
// those that wait for an earlier message of their alert.
func (db *Postgres) queue() (webhooks []uuid.UUID, rows map[uuid.UUID][]OutboxRow) {
	rows = map[uuid.UUID][]OutboxRow{}
	for _, o := range db.outbox.rows {
		if db.has(MessagesInOrder) && db.waits(o.ID) || o.Replay != uuid.Nil || !o.QuietUntil.IsZero() {
			continue
		}
		rows[o.WebhookID] = append(rows[o.WebhookID], o)
	}
	for _, list := range rows {
		slices.SortFunc(list, func(a, b OutboxRow) int { return cmp.Or(a.ReadyAt.Compare(b.ReadyAt), compareIDs(a.ID, b.ID)) })
	}
	return slices.SortedFunc(maps.Keys(rows), compareIDs), rows
}

// waits reports whether an earlier message about the same alert for the same webhook is open.
func (db *Postgres) waits(id uuid.UUID) bool {
	n := db.notifications.rows[id]
	of, _ := db.ofAlert.get(n.AlertID)
	for _, before := range of {
		if before == id {
			return false
		}
		if e := db.notifications.rows[before]; e.WebhookID == n.WebhookID && e.About == uuid.Nil && n.About == uuid.Nil && db.open(before) {
			return true
		}
	}
	return false
}

// open reports whether a message, or the digest that contains it, is in the outbox.
func (db *Postgres) open(id uuid.UUID) bool {
	if digest, in := db.digestOf.get(id); in {
		id = digest
	}
	return db.outbox.has(id)
}

func (o *OutboxRow) due(now time.Time) bool { return !o.ReadyAt.After(now) && !o.DueAt.After(now) }

// tokens returns how many messages the rate of a webhook allows at present.
func (w *Webhook) tokens(now time.Time) float64 {
	return max(1, math.Ceil(w.RatePerSecond/10)) - max(0, w.NextSendAt.Sub(now).Seconds())*w.RatePerSecond
}

// probes reports whether a single message has to be sent to a webhook first.
func (w *Webhook) probes() bool { return !w.OpenedAt.IsZero() || w.Holds > 0 }

// closedUntil returns until when nothing is sent to a webhook.
func (db *Postgres) closedUntil(w *Webhook) time.Time {
	until := w.Webhook.HeldUntil
	if w.Until.After(until) {
		until = w.Until
	}
	if probe, there := db.outbox.get(w.ProbeID); there && probe.Token == w.ProbeToken && w.ProbeToken != 0 && probe.DueAt.After(until) {
		until = probe.DueAt
	}
	return until
}

// Claim takes due messages, stores their bodies and records that their attempts begin.
func (db *Postgres) Claim(_ context.Context, request dispatch.ClaimRequest) (dispatch.Claimed, error) {
	var claimed dispatch.Claimed
	err := db.tx(func() error {
		now := db.now()
		ids, rows := db.queue()
		var list []dispatch.Due
		for _, id := range ids {
			w := db.webhooks.rows[id]
			if !w.Enabled {
				continue
			}
			closed := db.closedUntil(&w)
			next, due := time.Time{}, false
			for _, o := range rows[id] {
				if due = due || o.due(now); o.due(now) && !closed.After(now) {
					continue
				}
				at := o.DueAt
				if o.ReadyAt.After(at) {
					at = o.ReadyAt
				}
				if closed.After(at) {
					at = closed
				}
				if at.After(now) && (next.IsZero() || at.Before(next)) {
					next = at
				}
			}
			if wait := next.Sub(now); !next.IsZero() && (claimed.Next == 0 || wait < claimed.Next) {
				claimed.Next = wait
			}
			if due && !closed.After(now) {
				list = append(list, dispatch.Due{
					WebhookID: id, MaxConcurrent: w.MaxConcurrent, RatePerSecond: w.RatePerSecond, Tokens: w.tokens(now), Probe: w.probes(),
				})
			}
		}
		if len(list) == 0 {
			return nil
		}
		for _, dealt := range request.Deal(list) {
			db.gather(dealt, request.Replica, now)
			if err := db.claim(&request, dealt, now, &claimed); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return dispatch.Claimed{}, err
	}
	claimed.Unwanted = db.Unwanted(claimed.Deliveries)
	return claimed, nil
}

// claim takes the due rows of a webhook.
func (db *Postgres) claim(request *dispatch.ClaimRequest, dealt dispatch.Slots, now time.Time, claimed *dispatch.Claimed) error {
	w := db.webhooks.rows[dealt.WebhookID]
	slots, probe := dealt.Slots, w.probes()
	if w.RatePerSecond > 0 {
		slots = min(slots, int(max(0, math.Floor(w.tokens(now)))))
	}
	if probe && db.has(ProbeFirst) {
		slots = min(slots, 1)
	}
	_, rows := db.queue()
	var last OutboxRow
	count := 0
	for _, o := range rows[dealt.WebhookID] {
		if count == slots || !o.due(now) && (db.has(ClaimExclusive) || o.ReadyAt.After(now)) {
			continue
		}
		unknown := db.unknown(&o)
		n := db.notifications.rows[o.ID]
		schedule := request.ScheduleOf(&w.Webhook)
		if o.expired(now) && db.has(EventsExpire) && (!schedule.KeepsState || !n.Reason.IsEvent()) {
			db.giveUp(&o, request.Replica, now)
			claimed.Next = time.Millisecond
			continue
		}
		if schedule.TooOld(n.Reason, now.Sub(o.Since)) {
			o.ClaimedBy, o.Token = request.Replica, db.newToken()
			o.Attempts++
			if err := db.endNotMade(&o, exhausted, now); err != nil {
				return err
			}
			claimed.Next = time.Millisecond
			continue
		}
		if db.needless(&n, &o, now) {
			db.giveUp(&o, request.Replica, now)
			claimed.Next = time.Millisecond
			continue
		}
		o.ClaimedBy, o.DueAt, o.BegunAt = request.Replica, now.Add(request.Lease), now
		o.Attempts++
		if o.Token = 1; db.has(ClaimToken) {
			o.Token = db.newToken()
		}
		d := db.delivery(&o, &w, now)
		if d.AfterUnknown = unknown; d.Body == nil {
			b, problem, err := request.Render(&d)
			if err != nil {
				if err := db.endNotMade(&o, failed, now); err != nil {
					return err
				}
				continue
			}
			d.Problem = problem
			if b.Content != nil {
				d.Body, d.Fresh = &b, true
				if db.has(BodyFrozen) {
					db.bodies.put(o.ID, body{b, problem, now})
				}
			}
		}
		if !db.has(ClaimBegins) {
			o.BegunAt = time.Time{}
			o.Attempts--
		}
		db.outbox.put(o.ID, o)
		claimed.Deliveries = append(claimed.Deliveries, d)
		last = o
		count++
	}
	if count == 0 {
		return nil
	}
	w = db.webhooks.rows[dealt.WebhookID] // which may have been edited meanwhile
	if w.RatePerSecond > 0 {
		if w.NextSendAt.Before(now) {
			w.NextSendAt = now
		}
		w.NextSendAt = w.NextSendAt.Add(time.Duration(float64(count) / w.RatePerSecond * float64(time.Second)))
	}
	if !w.OpenedAt.IsZero() {
		w.Until = now.Add(request.Lease)
	}
	if probe {
		w.ProbeID, w.ProbeToken = last.ID, last.Token
	}
	db.webhooks.put(w.ID, w)
	return nil
}

// giveUp claims a message that is of no use any more, and ends it.
func (db *Postgres) giveUp(o *OutboxRow, replica string, now time.Time) {
	o.ClaimedBy, o.Token = replica, db.newToken()
	o.Attempts++
	db.notMade(o, discarded, now)
}

// endNotMade ends a claimed message without an attempt.
func (db *Postgres) endNotMade(o *OutboxRow, status notify.Status, now time.Time) error {
	db.notMade(o, status, now)
	return db.undelivered(o.ID, now)
}

func (db *Postgres) notMade(o *OutboxRow, status notify.Status, now time.Time) {
	db.outbox.remove(o.ID)
	db.settlements.put(o.ID, Settlement{
		Status: status, SettledAt: now, Trail: true,
		Attempt: Attempt{Number: o.Attempts, Token: o.Token, Replica: o.ClaimedBy, StartedAt: now, FinishedAt: now, Verdict: notify.VerdictNotMade},
	})
	db.lastAttempt.put(o.ID, o.Attempts)
}

// delivery returns what an attempt needs.
func (db *Postgres) delivery(o *OutboxRow, w *Webhook, now time.Time) notify.Delivery {
	n := db.notifications.rows[o.ID]
	d := notify.Delivery{
		NotificationID: o.ID, Reason: n.Reason, Token: o.Token, Attempt: o.Attempts, Try: o.Attempts - o.BegunFrom, CountedAttempts: o.Counted, Generation: o.Generation,
		Webhook: w.Webhook, At: now, Waited: now.Sub(o.Since),
	}
	if o.Reached != "" {
		d.Reached = strings.Split(o.Reached, "\n")
	}
	if b, rendered := db.bodies.get(o.ID); rendered {
		d.Body = &b.Body
	}
	if n.Reason == notify.ReasonDigest {
		members, _ := db.digests.get(o.ID)
		d.Digest = &notify.Digest{Size: len(members)}
		if n.Silence != uuid.Nil {
			d.Digest.Silence = &notify.DigestSilence{ID: n.Silence, From: n.SilencedFrom, Until: n.SilencedUntil}
		}
		for _, m := range members {
			d.Digest.Alerts = append(d.Digest.Alerts, db.notifications.rows[m].AlertID)
		}
		return d
	}
	a := db.alerts.rows[n.AlertID]
	d.Reference, _ = db.references.get(referenceKey{n.AlertID, w.ID})
	d.Alert = alerts.Instance{ID: a.ID, TenantID: a.TenantID, RuleID: a.RuleID, State: a.State}
	return d
}

// unknown records the attempt of a claim whose outcome has not been stored.
func (db *Postgres) unknown(o *OutboxRow) bool {
	if !o.claimed() {
		return false
	}
	key := attemptKey{o.ID, o.Attempts}
	if db.has(UnknownRecorded) && !db.attempts.has(key) {
		db.putAttempt(o.ID, Attempt{Number: o.Attempts, Token: o.Token, Replica: o.ClaimedBy, StartedAt: o.BegunAt})
	}
	return true
}

func (db *Postgres) putAttempt(id uuid.UUID, a Attempt) {
	db.attempts.put(attemptKey{id, a.Number}, a)
	if last, _ := db.lastAttempt.get(id); a.Number > last {
		db.lastAttempt.put(id, a.Number)
	}
}

// gather puts what exceeds a webhook's limit into digests.
func (db *Postgres) gather(dealt dispatch.Slots, replica string, now time.Time) {
	w := db.webhooks.rows[dealt.WebhookID]
	if w.DigestAbove == 0 {
		return
	}
	_, rows := db.queue()
	digests := 0
	var waiting []OutboxRow
	for _, o := range rows[w.ID] {
		switch {
		case !o.due(now) || o.expired(now):
		case o.Digest:
			// One whose repetition became due after a waiting message is claimed after it.
			if len(waiting) == 0 || !o.ReadyAt.After(waiting[0].ReadyAt) {
				digests++
			}
		case o.Attempts == o.BegunFrom && !o.Alone:
			waiting = append(waiting, o)
		}
	}
	for ; len(waiting) > w.DigestAbove && digests < dealt.Slots; digests++ {
		n := min(len(waiting), max(notify.DigestSize, w.DigestAbove+1))
		var useful []OutboxRow
		for _, o := range waiting[:n] {
			if m := db.notifications.rows[o.ID]; db.needless(&m, &o, now) {
				db.giveUp(&o, replica, now)
			} else {
				useful = append(useful, o)
			}
		}
		ended := n - len(useful)
		waiting, n = slices.Concat(useful, waiting[n:]), len(useful)
		if n <= w.DigestAbove {
			if ended == 0 {
				break
			}
			continue
		}
		id := db.newID()
		members := make([]uuid.UUID, n)
		for i, o := range waiting[:n] {
			members[i] = o.ID
			db.digestOf.put(o.ID, id)
			if db.has(DigestMoves) {
				db.outbox.remove(o.ID)
			}
		}
		db.notifications.put(id, Notification{ID: id, WebhookID: w.ID, TenantID: w.TenantID, Reason: notify.ReasonDigest, CreatedAt: now})
		db.digests.put(id, members)
		ready := waiting[0].ReadyAt
		db.outbox.put(id, OutboxRow{ID: id, WebhookID: w.ID, DueAt: ready, ReadyAt: ready, Since: now, Digest: true})
		waiting = waiting[n:]
	}
}

// Renew extends leases, and returns the remaining time of each claim that is not lost.
func (db *Postgres) Renew(_ context.Context, held []dispatch.Held, lease time.Duration) (left map[dispatch.Held]time.Duration, err error) {
	left = map[dispatch.Held]time.Duration{}
	err = db.tx(func() error {
		now := db.now()
		for _, h := range held {
			o, there := db.outbox.get(h.NotificationID)
			if !there || o.Token != h.Token || o.Token == 0 {
				continue
			}
			if o.DueAt.Before(now.Add(lease * 2 / 3)) {
				o.DueAt = now.Add(lease)
				db.outbox.put(o.ID, o)
			}
			left[h] = o.DueAt.Sub(now)
		}
		return nil
	})
	return left, err
}

// Unwanted returns the webhooks that do not accept the messages of a claim any more.
func (db *Postgres) Unwanted(deliveries []notify.Delivery) []uuid.UUID {
	now := db.now()
	asked := map[uuid.UUID]int64{}
	tokens := map[int64]bool{}
	for i := range deliveries {
		asked[deliveries[i].Webhook.ID] = deliveries[i].Webhook.Version
		tokens[deliveries[i].Token] = true
	}
	var unwanted []uuid.UUID
	for _, id := range slices.SortedFunc(maps.Keys(asked), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) }) {
		w, there := db.webhooks.get(id)
		if !there || w.Version != asked[id] || !w.Enabled || w.Webhook.HeldUntil.After(now) || w.probes() && !tokens[w.ProbeToken] {
			unwanted = append(unwanted, id)
		}
	}
	return unwanted
}
