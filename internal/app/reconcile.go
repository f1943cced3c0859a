package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator/reconcile"
	"tocsin/internal/clickhouse"
	"tocsin/internal/fault"
	"tocsin/internal/postgres"
)

// ReconcileOptions say what to reconcile. PostgresURL and ClickHouseURL are required.
type ReconcileOptions struct {
	PostgresURL   string
	ClickHouseURL string
	// Source says where exchanges are read, [clickhouse.Exchanges] by default.
	Source clickhouse.Mapping
	// Rules are the rules to reconcile; none means every enabled rule.
	Rules []uuid.UUID
	// Last is how far to look back.
	Last time.Duration
	// Keep is how long alerts are kept after they were resolved; 0 means for ever.
	Keep time.Duration
	// Confirm is how long to wait before missing alerts are looked for again.
	Confirm time.Duration
	Version string
}

// Reconciliation is the comparison of a rule's alerts with the matching exchanges.
type Reconciliation = reconcile.Reconciliation

// ReconciliationFinding is what is wrong with an alert of a window rule.
type ReconciliationFinding = reconcile.Finding

// Kinds of findings: an alert whose count lacks exchanges that became visible later, and one that
// fired, is open or was resolved without a reason.
const (
	ReconciledLate       = reconcile.Late
	ReconciledUnexpected = reconcile.Unexpected
)

func newReconciler(store *postgres.Reconciliation, source *clickhouse.Source, confirm, keep time.Duration) *reconcile.Reconciler {
	return &reconcile.Reconciler{Source: source, Alerts: store, Windows: source, Groups: store, Confirm: confirm, Keep: keep}
}

// Reconcile compares the alerts of rules with the matching exchanges, and calls each with the
// result of each rule. It changes nothing. A rule that cannot be read is an error, but does not
// stop the others.
func Reconcile(ctx context.Context, o ReconcileOptions, each func(Reconciliation) error) (err error) {
	if _, err := postgres.CheckSchema(ctx, o.PostgresURL); err != nil {
		return err
	}
	db, err := postgres.Open(ctx, o.PostgresURL, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	source, err := clickhouse.Open(clickhouse.Options{URL: o.ClickHouseURL, Mapping: o.Source, Version: o.Version})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	r := newReconciler(db.Reconciliation(), source, o.Confirm, o.Keep)
	found := 0
	var refused error
	err = eachReconcilable(ctx, db.Reconciliation(), func(rule postgres.ReconcilableRule) error {
		if len(o.Rules) > 0 && !slices.Contains(o.Rules, rule.ID) {
			return nil
		}
		found++
		result, err := r.Rule(ctx, rule.TenantID, rule.ID, o.Last)
		switch fault.KindOf(err) {
		case fault.NotFound:
			return nil // deleted meanwhile
		case fault.Conflict:
			refused = errors.Join(refused, err) // cannot be read
			return nil
		case fault.Internal, fault.Invalid, fault.Stale:
		}
		if err != nil && ctx.Err() == nil {
			refused = errors.Join(refused, fmt.Errorf("rule %s: %w", rule.ID, err))
			return nil
		}
		if err != nil {
			return err
		}
		return each(result)
	})
	err = errors.Join(err, refused)
	if err == nil && found < len(o.Rules) {
		return fmt.Errorf("only %[2]d of the %[1]d named rules are enabled; enable the others, or leave them out", len(o.Rules), found)
	}
	return err
}

// eachReconcilable calls f for each rule that can be reconciled.
func eachReconcilable(ctx context.Context, store *postgres.Reconciliation, f func(postgres.ReconcilableRule) error) error {
	const page = 1000
	for after := uuid.Nil; ; {
		list, err := store.Rules(ctx, after, page)
		if err != nil {
			return err
		}
		for _, rule := range list {
			if err := f(rule); err != nil {
				return err
			}
			after = rule.ID
		}
		if len(list) < page {
			return nil
		}
	}
}
