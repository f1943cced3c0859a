package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"tocsin/cursor"
	"tocsin/internal/postgres/pgq"
	"tocsin/rules"
)

// Reconciliation is the reconciler's store of alerts.
type Reconciliation struct{ db *DB }

// Reconciliation returns the reconciler's store of alerts.
func (db *DB) Reconciliation() *Reconciliation { return &Reconciliation{db} }

// ReconcilableRule names a rule that can be reconciled.
type ReconcilableRule struct {
	TenantID string
	ID       uuid.UUID
}

// Rules returns the enabled PER_EXCHANGE rules of all tenants by their ids, at
// most so many after one of them; [uuid.Nil] begins.
func (s *Reconciliation) Rules(ctx context.Context, after uuid.UUID, most int) ([]ReconcilableRule, error) {
	rows, err := s.db.queries.RulesReconcilable(ctx, pgq.RulesReconcilableParams{After: after, Most: int32(most)})
	if err != nil {
		return nil, fmt.Errorf("list rules: %w", err)
	}
	list := make([]ReconcilableRule, len(rows))
	for i, row := range rows {
		list[i] = ReconcilableRule{TenantID: row.TenantID, ID: row.RuleID}
	}
	return list, nil
}

// Reconcilable returns a rule with its former conditions, and its cursor.
func (s *Reconciliation) Reconcilable(ctx context.Context, tenant string, id uuid.UUID) (rules.Rule, *cursor.Position, error) {
	row, err := s.db.queries.RuleReconcilable(ctx, pgq.RuleReconcilableParams{TenantID: tenant, RuleID: id})
	if err != nil {
		return rules.Rule{}, nil, notFound(err, "rule")
	}
	rule, err := ruleOf(row.Rule, row.ArmedSinceNs, nil)
	if err != nil {
		return rules.Rule{}, nil, err
	}
	if rule.Former, err = erasOf(row.Former); err != nil {
		return rules.Rule{}, nil, err
	}
	if row.Cursor == nil {
		return rule, nil, nil
	}
	at, err := cursor.Decode(*row.Cursor)
	if err != nil {
		return rules.Rule{}, nil, fmt.Errorf("the stored cursor cannot be read: %w", err)
	}
	return rule, &at, nil
}

// WithoutAlert returns those keys for which the rule has no alert.
func (s *Reconciliation) WithoutAlert(ctx context.Context, rule uuid.UUID, keys []string) ([]string, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	without, err := s.db.queries.KeysWithoutAlert(ctx, pgq.KeysWithoutAlertParams{Keys: keys, RuleID: rule})
	if err != nil {
		return nil, fmt.Errorf("look up alerts: %w", err)
	}
	return without, nil
}

// AlertsEnded counts a rule's alerts on exchanges that ended in a range.
func (s *Reconciliation) AlertsEnded(ctx context.Context, rule uuid.UUID, fromNS, toNS int64) (int64, error) {
	count, err := s.db.queries.AlertsEnded(ctx, pgq.AlertsEndedParams{RuleID: rule, FromNs: fromNS, ToNs: toNS})
	if err != nil {
		return 0, fmt.Errorf("count alerts: %w", err)
	}
	return count, nil
}
