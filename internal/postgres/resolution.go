package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/evaluator/resolution"
	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
	"tocsin/rules"
)

// Resolution is the store for resolving alerts by age and by evidence.
type Resolution struct {
	db *DB
	// Notified and Suppressed are called like those of [Inbox].
	Notified   func(ctx context.Context, byWebhook map[uuid.UUID]int)
	Suppressed func(messages int)
	// Keyed are the presets whose receivers identify alerts by a key.
	Keyed []string
}

// Resolution returns the store for resolving alerts by age and by evidence.
func (db *DB) Resolution() *Resolution { return &Resolution{db: db} }

// Take takes the rule that was taken the longest ago, if that is at least every ago; nil if there
// is none.
func (s *Resolution) Take(ctx context.Context, every time.Duration) (*resolution.Rule, error) {
	row, err := s.db.queries.ResolutionTake(ctx, every)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, fmt.Errorf("add a rule whose alerts are resolved: %w", err)
	}
	rule := &resolution.Rule{
		ID: row.RuleID, TenantID: row.TenantID, LookBack: time.Duration(row.LookBackSeconds) * time.Second, TakenAt: row.At,
	}
	// A resolution that cannot be read resolves nothing. The rule's problem says so, on its page.
	if json.Unmarshal(row.Resolution, &rule.Resolution) != nil {
		rule.Resolution = rules.Resolution{}
	}
	var searchedFor rules.Resolution
	if row.SearchedToNs != nil && row.SearchedAt != nil && json.Unmarshal(row.SearchedFor, &searchedFor) == nil &&
		reflect.DeepEqual(searchedFor, evidenceOf(rule)) {
		rule.Searched = &resolution.Searched{ToNS: *row.SearchedToNs, At: *row.SearchedAt}
	}
	return rule, nil
}

// evidenceOf returns the evidence of a rule without its age.
func evidenceOf(r *resolution.Rule) rules.Resolution {
	return rules.Resolution{Evidence: r.Resolution.Evidence, Attribute: r.Resolution.Attribute}
}

// MarkSearched stores how far evidence was looked for.
func (s *Resolution) MarkSearched(ctx context.Context, r *resolution.Rule, searched resolution.Searched) error {
	text, err := json.Marshal(evidenceOf(r))
	if err == nil {
		err = s.db.queries.ResolutionMark(ctx, pgq.ResolutionMarkParams{
			SearchedToNs: searched.ToNS, SearchedAt: searched.At, SearchedFor: text, RuleID: r.ID,
		})
	}
	if err != nil {
		return fmt.Errorf("mark how far evidence was looked for: %w", err)
	}
	return nil
}

// Open returns open alerts of a rule, newest first, that come after one of them.
func (s *Resolution) Open(ctx context.Context, r *resolution.Rule, after *resolution.Open, most int) ([]resolution.Open, error) {
	p := pgq.AlertsResolvableParams{
		Attribute: r.Resolution.Attribute, TenantID: r.TenantID, RuleID: r.ID, Most: int32(most),
		BeforeAt: time.Unix(math.MaxInt32, 0), BeforeID: uuid.Max,
	}
	if after != nil {
		p.BeforeAt, p.BeforeID = after.FiredAt, after.ID
	}
	rows, err := s.db.queries.AlertsResolvable(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("list open alerts: %w", err)
	}
	list := make([]resolution.Open, len(rows))
	for i, row := range rows {
		list[i] = resolution.Open{ID: row.AlertID, FiredAt: row.FiredAt, EndedNS: row.EndedNs, ExecutionID: row.ExecutionID, Key: resolution.Key{
			Environment: row.Environment, Application: row.Application, Route: row.Route, Value: row.Value,
		}}
	}
	return list, nil
}

// ResolveAged resolves at most most alerts that are too old, and returns how many.
func (s *Resolution) ResolveAged(ctx context.Context, r *resolution.Rule, most int) (int, error) {
	return s.resolve(ctx, r, func(q *pgq.Queries) ([]uuid.UUID, error) {
		return q.AlertResolveAged(ctx, pgq.AlertResolveAgedParams{TenantID: r.TenantID, RuleID: r.ID, Most: int32(most)})
	})
}

// ResolveProven resolves those of the proven alerts that are still open, and returns how many.
func (s *Resolution) ResolveProven(ctx context.Context, r *resolution.Rule, proofs []resolution.Proof) (int, error) {
	if len(proofs) == 0 {
		return 0, nil
	}
	stored, err := json.Marshal(r.Resolution)
	if err != nil {
		return 0, fmt.Errorf("encode resolution: %w", err)
	}
	p := pgq.AlertResolveProvenParams{RuleID: r.ID, Resolution: stored}
	for i := range proofs {
		text, err := json.Marshal(proofs[i].Evidence)
		if err != nil {
			return 0, fmt.Errorf("encode evidence: %w", err)
		}
		p.AlertIds, p.Evidence = append(p.AlertIds, proofs[i].AlertID), append(p.Evidence, text)
	}
	return s.resolve(ctx, r, func(q *pgq.Queries) ([]uuid.UUID, error) { return q.AlertResolveProven(ctx, p) })
}

// resolve resolves alerts of a rule and writes their messages, in one transaction.
func (s *Resolution) resolve(ctx context.Context, r *resolution.Rule, change func(q *pgq.Queries) ([]uuid.UUID, error)) (int, error) {
	var resolved []uuid.UUID
	var messages written
	err := s.db.unattended(ctx, func(q *pgq.Queries) (err error) {
		messages = written{}
		if resolved, err = change(q); err != nil || len(resolved) == 0 {
			return err
		}
		list, err := s.targets(ctx, q, r.TenantID, resolved)
		if err != nil {
			return err
		}
		messages, err = writeFollowing(ctx, q, "", list)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("resolve alerts: %w", err)
	}
	(&Inbox{Notified: s.Notified, Suppressed: s.Suppressed}).notified(ctx, messages)
	return len(resolved), nil
}

// targets returns which webhooks are notified of the end of alerts. These are the webhooks that
// were notified of the alerts, if their rule wants that, and those that chose this event and
// identify alerts by a key: their receivers keep an incident open for each alert until its end
// arrives.
func (s *Resolution) targets(ctx context.Context, q *pgq.Queries, tenant string, resolved []uuid.UUID) ([]following, error) {
	receivers, err := q.ResolutionReceivers(ctx, pgq.ResolutionReceiversParams{TenantID: tenant, Keyed: s.Keyed})
	if err != nil {
		return nil, fmt.Errorf("find receivers that chose the end: %w", err)
	}
	var chosen []following
	if len(receivers) > 0 {
		if chosen, err = eventTargets(ctx, q, notify.ReasonResolved, resolved, receivers); err != nil {
			return nil, err
		}
	}
	return ends(ctx, q, resolved, chosen)
}
