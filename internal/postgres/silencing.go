package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/alerts/match"
	"tocsin/alerts/silences"
	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
	"tocsin/rules"
)

// A transaction that writes messages reads the silences itself, and decides by the instant that
// this statement returns from Postgres's clock. A commit of the evaluator has locked its checkpoint
// by then, and a change of silences locks it from its beginning to its end. So one comes entirely
// before the other. An action of a person on an alert locks no checkpoint; its messages are decided
// by the silences that are committed when the statement begins. A silence that cannot be read
// suppresses nothing.
//
// The transaction also holds the silences that it reads until it ends, because of their digests.

// silencesFor returns the silences in force for the tenants of some alerts, and the instant by which
// that is decided; nil if there are no silences to decide about.
func silencesFor(ctx context.Context, q *pgq.Queries, alertIDs []uuid.UUID) ([]*silences.Compiled, *time.Time, error) {
	rows, err := q.SilencesLive(ctx, alertIDs)
	if err != nil {
		return nil, nil, fmt.Errorf("read silences: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil, nil
	}
	var list []*silences.Compiled
	// The instant of a row that was waited for is later than that of the others. Digests of a silence
	// rely on it.
	var now time.Time
	for i := range rows {
		if rows[i].Now.After(now) {
			now = rows[i].Now
		}
		s := silenceOf(&rows[i].Silence)
		if c, err := silences.Compile(&s); err == nil {
			list = append(list, c)
		}
	}
	return silences.InForce(list, now), &now, nil
}

// suppress writes the notifications about new alerts that silences suppress, and returns the
// others.
func suppress(ctx context.Context, q *pgq.Queries, instances []alerts.Instance, list []notify.Notification) (others []notify.Notification, suppressed int, err error) {
	about := map[uuid.UUID]bool{}
	for i := range list {
		about[list[i].AlertID] = true
	}
	inForce, now, err := silencesFor(ctx, q, slices.Collect(maps.Keys(about)))
	if err != nil || len(inForce) == 0 {
		return list, 0, err
	}
	ruleIDs := map[uuid.UUID]bool{}
	var subjects []subject
	for i := range instances {
		if a := &instances[i]; about[a.ID] {
			ruleIDs[a.RuleID] = true
			subjects = append(subjects, subject{a.ID, a.TenantID, match.Subject{RuleID: a.RuleID, Severity: a.Severity, Exchange: &a.Exchange}})
		}
	}
	silenced, err := decide(ctx, q, inForce, subjects, ruleIDs)
	if err != nil {
		return nil, 0, err
	}
	p := pgq.NotificationSuppressParams{DecidedAt: *now}
	webhooks := map[uuid.UUID]bool{}
	for i := range list {
		n := &list[i]
		id, is := silenced[n.AlertID]
		if !is {
			others = append(others, *n)
			continue
		}
		p.NotificationIds, p.TenantIds, p.AlertIds = append(p.NotificationIds, n.ID), append(p.TenantIds, n.TenantID), append(p.AlertIds, n.AlertID)
		p.RuleIds, p.WebhookIds, p.Reasons = append(p.RuleIds, n.RuleID), append(p.WebhookIds, n.WebhookID), append(p.Reasons, string(n.Reason))
		p.SilenceIds, webhooks[n.WebhookID] = append(p.SilenceIds, id), true
	}
	if len(p.NotificationIds) == 0 {
		return others, 0, nil
	}
	p.HeldIds = slices.Collect(maps.Keys(webhooks))
	written, err := q.NotificationSuppress(ctx, p)
	if err == nil && int(written) != len(p.NotificationIds) {
		err = errNoWebhook
	}
	if err != nil {
		return nil, 0, fmt.Errorf("write suppressed notifications: %w", err)
	}
	return others, len(p.NotificationIds), nil
}

// silencedAlerts returns which silence suppresses messages about each of some stored alerts, and the
// instant of the decision; nil if there are no silences to decide about. No silence suppresses
// messages about Tocsin itself.
func silencedAlerts(ctx context.Context, q *pgq.Queries, alertIDs []uuid.UUID) (map[uuid.UUID]uuid.UUID, *time.Time, error) {
	inForce, now, err := silencesFor(ctx, q, alertIDs)
	if err != nil || len(inForce) == 0 {
		return nil, now, err
	}
	rows, err := q.SilenceAlerts(ctx, alertIDs)
	if err != nil {
		return nil, nil, fmt.Errorf("read what silences match: %w", err)
	}
	ruleIDs := map[uuid.UUID]bool{}
	var subjects []subject
	for i := range rows {
		row := &rows[i]
		s := subject{row.AlertID, row.TenantID, match.Subject{RuleID: row.RuleID, Severity: rules.Severity(row.Severity)}}
		if readSubject(row.Exchange, row.Count, &s.of) {
			ruleIDs[row.RuleID] = true
			subjects = append(subjects, s)
		}
	}
	silenced, err := decide(ctx, q, inForce, subjects, ruleIDs)
	return silenced, now, err
}

// readSubject decodes what a stored alert is about, and reports whether it could be read.
func readSubject(exchange, count []byte, s *match.Subject) bool {
	if count != nil {
		s.Count = new(alerts.Count)
		return json.Unmarshal(count, s.Count) == nil
	}
	s.Exchange = new(rules.Exchange)
	return json.Unmarshal(exchange, s.Exchange) == nil
}

// subject is an alert to decide about.
type subject struct {
	alert  uuid.UUID
	tenant string
	of     match.Subject
}

// decide returns which silence in force suppresses messages about each alert. Alerts of rules that
// cannot be read are not suppressed.
func decide(ctx context.Context, q *pgq.Queries, inForce []*silences.Compiled, subjects []subject, ruleIDs map[uuid.UUID]bool) (map[uuid.UUID]uuid.UUID, error) {
	said, err := rulesSaying(ctx, q, ruleIDs)
	if err != nil {
		return nil, err
	}
	ofTenant := map[string][]*silences.Compiled{}
	for _, c := range inForce {
		ofTenant[c.TenantID] = append(ofTenant[c.TenantID], c)
	}
	silenced := map[uuid.UUID]uuid.UUID{}
	for i := range subjects {
		s := &subjects[i]
		rule, known := said[s.of.RuleID]
		if !known {
			continue
		}
		s.of.Labels, s.of.Scope, s.of.ErrorTypes = rule.Labels, rule.Scope, rule.ErrorTypes
		if c := silences.Suppressing(ofTenant[s.tenant], &s.of); c != nil {
			silenced[s.alert] = c.ID
		}
	}
	return silenced, nil
}

// rulesSaying returns those properties of stored rules that silences match on, for the rules that
// can be read.
func rulesSaying(ctx context.Context, q *pgq.Queries, ids map[uuid.UUID]bool) (map[uuid.UUID]match.Subject, error) {
	rows, err := q.SilenceRules(ctx, slices.Collect(maps.Keys(ids)))
	if err != nil {
		return nil, fmt.Errorf("read rules for silences: %w", err)
	}
	said := make(map[uuid.UUID]match.Subject, len(rows))
	for _, row := range rows {
		if s, ok := saidByRule(row.Scope, row.Filter, row.About); ok {
			said[row.RuleID] = s
		}
	}
	return said, nil
}

// saidByRule returns those properties of a stored rule that silences match on, and whether they can
// be read.
func saidByRule(scope, filter, about []byte) (s match.Subject, ok bool) {
	var f rules.Filter
	a, err := aboutOf(about)
	if err != nil || json.Unmarshal(scope, &s.Scope) != nil || json.Unmarshal(filter, &f) != nil {
		return s, false
	}
	s.Labels, s.ErrorTypes = a.Labels, f.ErrorTypes
	return s, true
}

// silenceOf decodes a stored silence. If it cannot be read, its problem says why.
func silenceOf(row *pgq.Silence) silences.Silence {
	s := silences.Silence{
		ID: row.SilenceID, TenantID: row.TenantID, Version: row.Version,
		CreatedAt: row.CreatedAt, CreatedBy: row.CreatedBy, UpdatedAt: row.UpdatedAt, UpdatedBy: row.UpdatedBy,
		EndedAt: row.EndedAt, EndedBy: row.EndedBy,
		Definition: silences.Definition{Name: row.Name, Reason: row.Reason, StartsAt: row.StartsAt, EndsAt: row.EndsAt, Digest: row.Digest},
	}
	if err := strictly(row.Match, &s.Match); err != nil {
		s.Problem = "what it matches cannot be read: " + err.Error()
	}
	if row.Recurrence != nil {
		s.Recurrence = new(silences.Recurrence)
		if err := strictly(row.Recurrence, s.Recurrence); err != nil {
			s.Problem = "its recurrence cannot be read: " + err.Error()
		}
	}
	return s
}

// strictly decodes JSON and refuses unknown fields: an unknown condition must not be ignored.
func strictly(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}
