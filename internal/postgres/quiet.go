package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
)

// A transaction that writes messages about alerts that are not critical also reads the quiet hours
// of the webhooks. It decides by the instant that the statement returns from Postgres's clock. A
// held message is in the outbox, but not in the queue, and stores the end of the quiet hours.
//
// A periodic pass of any replica releases messages after that end. In one transaction it locks the alerts,
// decides which messages are still of use, and puts these into the queue. So each message is
// released or ended once, whatever dies and however many replicas do this, and what people do to the
// alert comes before or after. The pass also moves the end if quiet hours were edited, because an
// edit and the writers of messages take no common lock.

// target is a webhook that is notified of an alert.
type target struct{ alert, webhook uuid.UUID }

// quietTargets returns the pairs of alert and webhook whose messages quiet hours hold, and until
// when. Quiet hours that cannot be read hold nothing.
func quietTargets(ctx context.Context, q *pgq.Queries, alertIDs, webhookIDs []uuid.UUID) (map[target]time.Time, error) {
	rows, err := q.QuietTargets(ctx, pgq.QuietTargetsParams{AlertIds: alertIDs, WebhookIds: webhookIDs})
	if err != nil {
		return nil, fmt.Errorf("read quiet hours: %w", err)
	}
	until := map[target]time.Time{}
	ends := map[uuid.UUID]time.Time{}
	for _, row := range rows {
		end, known := ends[row.WebhookID]
		if !known {
			end = quietHoursOf(row.QuietHours).Until(row.Now)
			ends[row.WebhookID] = end
		}
		if end.After(row.Now) {
			until[target{row.AlertID, row.WebhookID}] = end
		}
	}
	return until, nil
}

// quietHoursOf decodes stored quiet hours; none if there are none or they cannot be read.
func quietHoursOf(text []byte) (hours notify.QuietHours) {
	if text == nil || strictly(text, &hours) != nil {
		return nil
	}
	return hours
}

// quietColumn returns quiet hours in stored form.
func quietColumn(hours notify.QuietHours) ([]byte, error) {
	if len(hours) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(hours)
	if err != nil {
		return nil, fmt.Errorf("encode quiet hours: %w", err)
	}
	return text, nil
}

// holdQuiet writes the notifications about new alerts that quiet hours hold, and returns the
// others.
func holdQuiet(ctx context.Context, q *pgq.Queries, list []notify.Notification) (others []notify.Notification, err error) {
	alertIDs, webhookIDs := make([]uuid.UUID, len(list)), make([]uuid.UUID, len(list))
	for i := range list {
		alertIDs[i], webhookIDs[i] = list[i].AlertID, list[i].WebhookID
	}
	until, err := quietTargets(ctx, q, alertIDs, webhookIDs)
	if err != nil || len(until) == 0 {
		return list, err
	}
	var p pgq.NotificationQuietParams
	webhooks := map[uuid.UUID]bool{}
	for i := range list {
		n := &list[i]
		end, is := until[target{n.AlertID, n.WebhookID}]
		if !is {
			others = append(others, *n)
			continue
		}
		p.NotificationIds, p.TenantIds, p.AlertIds = append(p.NotificationIds, n.ID), append(p.TenantIds, n.TenantID), append(p.AlertIds, n.AlertID)
		p.RuleIds, p.WebhookIds, p.Reasons = append(p.RuleIds, n.RuleID), append(p.WebhookIds, n.WebhookID), append(p.Reasons, string(n.Reason))
		p.QuietUntils, webhooks[n.WebhookID] = append(p.QuietUntils, end), true
	}
	p.HeldIds = slices.Collect(maps.Keys(webhooks))
	written, err := q.NotificationQuiet(ctx, p)
	if err == nil && int(written) != len(p.NotificationIds) {
		err = errNoWebhook
	}
	if err != nil {
		return nil, fmt.Errorf("write notifications that quiet hours hold: %w", err)
	}
	return others, nil
}

const (
	// mostQuiet is how many alerts one search returns; quietAtOnce is how many share a transaction.
	mostQuiet   = 1000
	quietAtOnce = 100
)

// EndQuiet puts messages into the queue whose quiet hours ended before now (nil is Postgres's
// clock), and ends those that are of no use any more. It returns how many messages are due for each
// webhook. A failure for one alert does not hold up the others.
func (s *Outbox) EndQuiet(ctx context.Context, now *time.Time) (due map[uuid.UUID]int, err error) {
	webhooks, err := s.alone().QuietWaiting(ctx, now)
	if err != nil {
		return nil, fmt.Errorf("find webhooks with quiet hours: %w", err)
	}
	due = map[uuid.UUID]int{}
	p := s.newPass()
	for _, w := range webhooks {
		err := fault.Guard(func() error {
			move := pgq.QuietMoveParams{WebhookID: w.WebhookID, Now: w.Now, EndsAt: quietHoursOf(w.QuietHours).Until(w.Now)}
			if err := s.alone().QuietMove(ctx, move); err != nil {
				p.fail(fmt.Errorf("move end of quiet hours: %w", err))
			}
			return s.endQuietOf(ctx, &p, w, now, due)
		})
		if err != nil {
			p.fail(fmt.Errorf("end quiet hours of webhook %s: %w", w.WebhookID, err))
		}
		digests, err := s.alone().QuietDigests(ctx, pgq.QuietDigestsParams{WebhookID: w.WebhookID, Now: w.Now})
		if err != nil {
			p.fail(fmt.Errorf("release digests of webhook %s: %w", w.WebhookID, err))
		} else if digests > 0 {
			due[w.WebhookID] += int(digests)
		}
	}
	return due, p.failed()
}

// endQuietOf releases the messages of one webhook whose quiet hours have ended.
func (s *Outbox) endQuietOf(ctx context.Context, p *pass, w pgq.QuietWaitingRow, now *time.Time, due map[uuid.UUID]int) error {
	for after := uuid.Nil; ; {
		ids, err := s.alone().QuietOver(ctx, pgq.QuietOverParams{WebhookID: w.WebhookID, Now: w.Now, AfterID: after, Most: mostQuiet})
		if err != nil {
			return fmt.Errorf("find messages whose quiet hours are over: %w", err)
		}
		for some := range slices.Chunk(ids, quietAtOnce) {
			if released := p.releaseApart(ctx, w.WebhookID, some, now); released > 0 {
				due[w.WebhookID] += released
			}
		}
		if len(ids) < mostQuiet {
			return nil
		}
		after = ids[len(ids)-1]
	}
}

// releaseApart releases the messages about some alerts in one transaction. If that fails, it uses a
// transaction for each alert.
func (p *pass) releaseApart(ctx context.Context, webhook uuid.UUID, alertIDs []uuid.UUID, now *time.Time) (released int) {
	if released, err := p.release(ctx, webhook, alertIDs, now); err == nil {
		return released
	}
	for _, id := range alertIDs {
		n, err := p.release(ctx, webhook, []uuid.UUID{id}, now)
		if err != nil {
			p.fail(fmt.Errorf("end quiet hours of webhook %s: alert %s: %w", webhook, id, err))
		}
		released += n
	}
	return released
}

func (p *pass) release(ctx context.Context, webhook uuid.UUID, alertIDs []uuid.UUID, now *time.Time) (released int, err error) {
	err = p.onAlerts(ctx, alertIDs, func(q *pgq.Queries, alertIDs []uuid.UUID) error {
		released = 0
		if err := q.QuietLock(ctx, pgq.QuietLockParams{AlertIds: alertIDs, WebhookID: webhook}); err != nil {
			return err
		}
		rows, err := q.QuietRead(ctx, pgq.QuietReadParams{AlertIds: alertIDs, WebhookID: webhook, Now: now, UndoWithin: undoWithin})
		if err != nil {
			return err
		}
		send, end, count := afterQuiet(rows)
		if len(end) > 0 {
			if err := q.QuietDiscard(ctx, pgq.QuietDiscardParams{Ids: end, DiscardedBy: notify.ByTocsin, Why: notify.NeedlessAfterQuiet}); err != nil {
				return fmt.Errorf("end obsolete messages: %w", err)
			}
		}
		if len(send) > 0 {
			if err := q.QuietRelease(ctx, pgq.QuietReleaseParams{Ids: send, Now: now}); err != nil {
				return fmt.Errorf("release: %w", err)
			}
			count.Now = now
			if err := q.EscalationCount(ctx, count); err != nil {
				return fmt.Errorf("count minutes of escalation: %w", err)
			}
		}
		released = len(send)
		if len(rows) == 0 {
			return nil
		}
		return q.AlertMessaged(ctx, pgq.AlertMessagedParams{AlertIds: alertIDs, UndoWithin: undoWithin})
	})
	if err != nil {
		return 0, err
	}
	return released, nil
}

// afterQuiet decides which messages are sent and which ones end; rows are ordered by alert. Count are the alerts
// of what is sent.
func afterQuiet(rows []pgq.QuietReadRow) (send, end []uuid.UUID, count pgq.EscalationCountParams) {
	for len(rows) > 0 {
		n := slices.IndexFunc(rows, func(r pgq.QuietReadRow) bool { return r.AlertID != rows[0].AlertID })
		if n < 0 {
			n = len(rows)
		}
		held := make([]notify.QuietMessage, n)
		for i := range held {
			held[i] = notify.QuietMessage{Reason: notify.Reason(rows[i].Reason), Handled: rows[i].Handled}
		}
		before := len(send)
		for i, sent := range notify.AfterQuiet(rows[0].Notified, held) {
			if sent {
				send = append(send, rows[i].NotificationID)
			} else {
				end = append(end, rows[i].NotificationID)
			}
		}
		if len(send) > before {
			count.AlertIds, count.Firsts = append(count.AlertIds, rows[0].AlertID), append(count.Firsts, !rows[0].Notified)
		}
		rows = rows[n:]
	}
	return send, end, count
}
