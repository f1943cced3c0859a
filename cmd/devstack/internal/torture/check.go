//go:build unix

package torture

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// alert is a row of what was raised.
type alert struct {
	ID, RuleID  string
	RuleVersion int64
	State       string
	About       subject
	Correlation string
	Group       string
	FiredAt     time.Time
	ResolvedAt  *time.Time
	// Title is what the alert counted when it fired, Observed and Volume when it changed last.
	Title            string
	Observed, Volume int64
	Severity         string
	// ResolvedFor is why the product resolved it, EvidenceNS when the exchange began that it names as evidence.
	ResolvedFor string
	EvidenceNS  int64
}

// subject is what an alert is about.
type subject string

const (
	anExchange subject = "exchange"
	aGroup     subject = "group"
	aRule      subject = "rule"
	theSource  subject = "source"
)

// notification is a row of the messages, waiting or settled.
type notification struct {
	ID, AlertID, RuleID, WebhookID, Hook, Reason string
	// DigestID is the digest that it is in; empty when it is in none.
	DigestID string
	// Status is empty while it waits. It is that of the digest, and so is whether it waits.
	Status  string
	Waiting bool
	// Own says that it waits, or was settled, by itself.
	Own       bool
	WrittenAt time.Time
	// StoredAt is when it was committed, or later.
	StoredAt time.Time
}

// aSuppression is the status of what a silence suppressed.
const aSuppression = "SUPPRESSED"

// aDigest is the reason of a notification that tells others and has no alert.
const aDigest = "DIGEST"

// tables is what the product left behind.
type tables struct {
	alerts        []alert
	notifications []notification
	attempts      map[string][]attempt
	// silenceDigests are the digests of silences, listings what they list.
	silenceDigests []silenceDigest
	listings       []listing
}

// silenceDigest is the digest of a silence, of so many suppressed messages.
type silenceDigest struct {
	ID, Hook string
	Size     int
}

type listing struct{ NotificationID, DigestID string }

func readTables(ctx context.Context, db querier) (*tables, error) {
	var t tables
	var err error
	if t.alerts, err = read[alert](ctx, db, `
		SELECT alert_id::text, rule_id::text, rule_version, state,
		       CASE WHEN source IS NOT NULL THEN 'source' WHEN health THEN 'rule' WHEN group_key IS NOT NULL THEN 'group' ELSE 'exchange' END,
		       coalesce(exchange->>'correlationId', ''), coalesce(group_key, ''), fired_at, resolved_at,
		       title, coalesce((count->>'observed')::bigint, 0), coalesce((count->>'volume')::bigint, 0), severity,
		       coalesce(resolution->>'reason', ''), coalesce((resolution->>'startTimeNs')::bigint, 0)
		FROM alert ORDER BY fired_at`); err != nil {
		return nil, fmt.Errorf("read alerts: %w", err)
	}
	if t.notifications, err = read[notification](ctx, db, `
		SELECT n.notification_id::text, coalesce(n.alert_id::text, ''), coalesce(n.rule_id::text, ''), n.webhook_id::text, w.name, n.reason,
		       coalesce(m.digest_id::text, ''), coalesce(s.status, ''), o.notification_id IS NOT NULL,
		       EXISTS (SELECT FROM settlement x WHERE x.notification_id = n.notification_id)
		           OR EXISTS (SELECT FROM outbox x WHERE x.notification_id = n.notification_id), n.created_at, coalesce(pg_xact_commit_timestamp(n.xmin), now())
		FROM notification n
		JOIN webhook w USING (webhook_id)
		LEFT JOIN digest_member m USING (notification_id)
		LEFT JOIN settlement s ON s.notification_id = coalesce(m.digest_id, n.notification_id)
		LEFT JOIN outbox o ON o.notification_id = coalesce(m.digest_id, n.notification_id)`); err != nil {
		return nil, fmt.Errorf("read notifications: %w", err)
	}
	if t.attempts, err = readAttempts(ctx, db); err != nil {
		return nil, fmt.Errorf("read attempts: %w", err)
	}
	if t.silenceDigests, err = read[silenceDigest](ctx, db, `SELECT d.notification_id::text, w.name, d.size
		FROM digest d JOIN notification USING (notification_id) JOIN webhook w USING (webhook_id) WHERE d.silence_id IS NOT NULL`); err != nil {
		return nil, fmt.Errorf("read digests of silences: %w", err)
	}
	if t.listings, err = read[listing](ctx, db, `SELECT notification_id::text, digest_id::text FROM digest_listing`); err != nil {
		return nil, fmt.Errorf("read what digests list: %w", err)
	}
	return &t, nil
}

func read[T any](ctx context.Context, db querier, sql string) ([]T, error) {
	rows, err := db.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[T])
}

// check compares the tables and what the receiver got with what the run noted.
func (w *world) check(ctx context.Context, db querier) (*Report, error) {
	t, err := readTables(ctx, db)
	if err != nil {
		return nil, err
	}
	report := &Report{
		Seed: w.options.Seed, Form: w.options.Form, Exchanges: len(w.truth.exchanges), Notifications: len(t.notifications),
		Kills: w.tally.of(killReplica, crashPostgres, crashClickHouse, crashPooler), Failovers: w.tally.of(failOver),
	}
	if w.disk != nil {
		if report.NoRoom, err = w.postgres.noRoom(); err != nil {
			return nil, err
		}
	}
	w.truth.mu.Lock()
	defer w.truth.mu.Unlock()
	w.checkAlerts(report, t)
	w.checkLosses(report, t)
	if err := w.checkWindows(report, t); err != nil {
		return nil, err
	}
	w.checkHealth(report, t)
	w.checkNotifications(report, t)
	w.checkMessages(report, t)
	w.checkServices(report, t)
	w.checkQuiet(report, t)
	w.checkSilenced(report, t)
	w.checkSilenceDigests(report, t)
	return report, nil
}

// raised is what identifies an alert: which rule, which exchange.
type raised struct{ ruleID, correlation string }

func (w *world) checkAlerts(report *Report, t *tables) {
	got := map[raised]int{}
	lives := map[string]*life{}
	for _, l := range w.truth.lives {
		lives[l.id] = l
	}
	done := w.truth.lastDone(time.Now().UnixNano())
	for _, a := range t.alerts {
		if a.About != anExchange {
			continue
		}
		report.Alerts++
		got[raised{a.RuleID, a.Correlation}]++
		w.checkState(report, lives[a.RuleID], &a, done)
	}
	for _, l := range w.truth.lives {
		for i := range w.truth.exchanges {
			e := &w.truth.exchanges[i]
			key := raised{l.id, e.correlation()}
			count := got[key]
			delete(got, key)
			expected := w.truth.expected(l, e, w.truth.seen[i])
			switch expected {
			case one:
				report.Must++
			case perhaps:
				report.Perhaps++
			case none:
			}
			switch {
			case count == 0 && expected == one:
				report.find(missed, "%s", w.story(l, i))
			case count > 0 && expected == none:
				report.find(unexpected, "%s", w.story(l, i))
			case count > 1:
				report.find(duplicated, "%d alerts: %s", count, w.story(l, i))
			}
		}
	}
	for key, count := range got {
		report.find(unexpected, "%d alerts of rule %s for exchange %q, which does not exist", count, key.ruleID, key.correlation)
	}
}

// story tells what is known about a rule and an exchange, in seconds of the run.
func (w *world) story(l *life, number int) string {
	e, seen := &w.truth.exchanges[number], w.truth.seen[number]
	at := func(ns int64) float64 { return float64(ns-w.began.UnixNano()) / 1e9 }
	text := fmt.Sprintf("rule %q, exchange %s %q: began %.3f s, ended %.3f s, visible from %.3f to %.3f s, look-back %d s; armed",
		l.rule.name, e.correlation(), e.id[:min(len(e.id), 40)], at(e.startNS), at(e.endNS), at(seen.fromNS), at(seen.toNS), l.rule.lookBackSeconds)
	var armed strings.Builder
	for _, p := range l.periods {
		fmt.Fprintf(&armed, " from %.3f", at(p.began.toNS))
		if p.ended != nil {
			fmt.Fprintf(&armed, " to %.3f", at(p.ended.fromNS))
		}
	}
	return text + armed.String()
}

func (w *world) checkNotifications(report *Report, t *tables) {
	lives := map[string]*life{}
	for _, l := range w.truth.lives {
		lives[l.id] = l
	}
	type written struct{ alertID, hook, reason string }
	got := map[written]int{}
	for _, n := range t.notifications {
		if n.Reason == aDigest {
			report.Digests++
		} else {
			got[written{n.AlertID, n.Hook, n.Reason}]++
		}
		if n.Reason == anEscalation {
			report.Escalated++
		}
		switch {
		case n.Waiting:
			report.find(undelivered, "notification %s to %s still waits; attempts %d", n.ID, n.Hook, len(t.attempts[n.ID]))
		case n.Status == aSuppression:
		case n.Status != "DELIVERED":
			report.find(undelivered, "notification %s to %s is %q; attempts %d", n.ID, n.Hook, n.Status, len(t.attempts[n.ID]))
		}
	}
	for _, a := range t.alerts {
		l := lives[a.RuleID]
		if l == nil {
			continue
		}
		if l.rule.routed && a.About == anExchange {
			report.Routed++
		}
		if l.replayed != nil {
			report.Replayed++
		}
		for _, m := range w.messages(l, &a) {
			key := written{a.ID, m.hook, m.reason}
			switch count := got[key]; {
			case count == 0 && !m.perhaps:
				report.find(notificationMissing, "%s of alert %s of %q at version %d to %s", m.reason, a.ID, l.rule.name, a.RuleVersion, m.hook)
			case count > 1:
				report.find(notificationTwice, "%d %s of alert %s to %s", count, m.reason, a.ID, m.hook)
			}
			delete(got, key)
		}
	}
	for key := range got {
		report.find(notificationStray, "%s of alert %s to %s", key.reason, key.alertID, key.hook)
	}
}

// message is one that an alert must have, or perhaps has.
type message struct {
	hook, reason string
	perhaps      bool
}

// messages are those that an alert has: one to each webhook when it fires, one more when a count falls below its
// threshold, and one each to the operators when a rule cannot be evaluated, or the source not be read, and when it can
// again.
func (l *life) messages(a *alert) []message {
	if a.About == theSource {
		out := []message{{operators, "SOURCE_FAILING", false}}
		if a.State == "RESOLVED" {
			out = append(out, message{operators, "SOURCE_RECOVERED", false})
		}
		return out
	}
	if a.About == aRule {
		out := []message{{operators, "RULE_FAILING", false}}
		if a.State == "RESOLVED" {
			// Who edits a rule knows of its failing: nobody need be notified that it ended.
			out = append(out, message{operators, "RULE_RECOVERED", l.touchedDuring(a.FiredAt, *a.ResolvedAt)})
		}
		return out
	}
	var out []message
	for _, hook := range l.hooksAt(a.RuleVersion) {
		out = append(out, message{hook, "FIRED", false})
		if (a.About == aGroup || l.rule.ending.notifies) && a.State == "RESOLVED" {
			out = append(out, message{hook, "RESOLVED", false})
		}
	}
	return out
}

// checkMessages compares what the receiver got with what was to be sent.
func (w *world) checkMessages(report *Report, t *tables) {
	alerts := map[string]alert{}
	for _, a := range t.alerts {
		alerts[a.ID] = a
	}
	came := map[string][]request{}
	for _, r := range w.receiver.requests() {
		report.Requests++
		came[r.webhookID] = append(came[r.webhookID], r)
	}
	gathered := w.checkDigests(report, t, came)
	for _, n := range t.notifications {
		requests := came[n.ID]
		delete(came, n.ID)
		if gathered[n.ID] {
			continue
		}
		accepted := 0
		for _, r := range requests {
			if r.accepted {
				accepted++
			}
			a := alerts[n.AlertID]
			if r.read && !r.isOf(&n, &a) {
				report.find(wrongMessage, "notification %s to %s: came to %s as alert %s of rule %s for %s",
					n.ID, n.Hook, r.hook, r.alertID, r.ruleID, r.correlation)
			}
		}
		if accepted == 0 && n.Status != aSuppression {
			report.find(neverReceived, "notification %s to %s, %s, %d requests", n.ID, n.Hook, n.Status, len(requests))
		}
		w.checkRepeats(report, n, t.attempts[n.ID], requests, accepted)
	}
	for id, requests := range came {
		if w.takenBack(t, requests) {
			report.RepeatedByFailover++
			continue
		}
		report.find(wrongMessage, "%d requests of a notification %q that does not exist", len(requests), id)
	}
}
