package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator/reconcile"
	"tocsin/internal/clickhouse"
	"tocsin/internal/fault"
	"tocsin/internal/postgres"
	"tocsin/rules"
)

// watch compares the exchanges of the last hour, and of the hour behind a longer look-back, with alerts
// from time to time, on one replica at a time. It logs the result and stores it, so that each replica
// shows the same.
type watch struct {
	store      *postgres.Reconciliation
	reconciler *reconcile.Reconciler
	every      time.Duration
	logger     *slog.Logger
}

const (
	// watchLast is how far a pass looks back.
	watchLast = time.Hour
	// watchBehind is how much of the time behind a look-back a pass compares.
	watchBehind = time.Hour
	// watchPage is how many rules are read at once.
	watchPage = 200
	// watchShare is the part of the time between passes that one pass may take, as a divisor. The
	// next pass continues with the remaining rules.
	watchShare = 5
	// watchConfirm is how long missing alerts may still be raised.
	watchConfirm = 30 * time.Second
)

func newWatch(store *postgres.Reconciliation, source *clickhouse.Source, every, keep time.Duration, logger *slog.Logger) *watch {
	reconciler := newReconciler(store, source, min(watchConfirm, every), keep)
	reconciler.Behind = watchBehind
	return &watch{store: store, every: every, logger: logger, reconciler: reconciler}
}

// run compares until ctx ends.
func (w *watch) run(ctx context.Context) {
	ticker := time.NewTicker(w.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		// A pass of another replica may be almost as old, and then replaces the pass of this one.
		_, err := w.store.Pass(ctx, w.every/2, func(ctx context.Context, after uuid.UUID) (postgres.ReconcilePass, error) {
			began := time.Now()
			pass, err := w.pass(ctx, after)
			pass.Took = time.Since(began)
			return pass, err
		})
		if err != nil && ctx.Err() == nil {
			w.logger.WarnContext(ctx, "reconciliation failed; it is repeated after TOCSIN_RECONCILE_INTERVAL: run tocsin doctor if this repeats", slog.Any("error", err))
		}
	}
}

// pass compares rules until all are compared or its time is up.
func (w *watch) pass(ctx context.Context, after uuid.UUID) (postgres.ReconcilePass, error) {
	deadline := time.Now().Add(w.every / watchShare)
	pass := postgres.ReconcilePass{Next: after}
	for {
		list, err := w.store.Rules(ctx, pass.Next, watchPage)
		if err != nil {
			return pass, err
		}
		for i, rule := range list {
			// Window rules are compared only on request: a person who reads the findings must
			// distinguish late exchanges from defects.
			if rule.FireMode == rules.PerExchange {
				if err := w.compare(ctx, rule, &pass); err != nil {
					return pass, err
				}
			}
			pass.Next = rule.ID
			if i+1 < len(list) && time.Now().After(deadline) {
				return pass, nil
			}
		}
		if len(list) < watchPage {
			pass.Next = uuid.Nil
			return pass, nil
		}
	}
}

// compare compares one rule. Its error means that the pass was ended.
func (w *watch) compare(ctx context.Context, rule postgres.ReconcilableRule, pass *postgres.ReconcilePass) error {
	result, err := w.reconciler.Rule(ctx, rule.TenantID, rule.ID, watchLast)
	switch {
	case fault.KindOf(err) == fault.NotFound:
		return nil // deleted meanwhile
	case ctx.Err() != nil:
		return err
	case err != nil:
		// A rule that cannot be compared, like one that cannot be evaluated, does not hide the
		// others.
		w.logger.WarnContext(ctx, "rule not reconciled; it is compared again later: run tocsin doctor if this repeats", slog.String("rule_id", rule.ID.String()), slog.Any("error", err))
		return nil
	}
	if err := w.store.Compared(ctx, &result); err != nil {
		w.logger.WarnContext(ctx, "comparison not stored; until one is, exchanges that become visible too late are not counted, or called missing", slog.String("rule_id", rule.ID.String()), slog.Any("error", err))
	}
	pass.Rules++
	pass.Missing += result.Missing
	if result.Missing > 0 {
		w.logger.ErrorContext(ctx, "exchanges that match have no alert; TocsinAlertsMissing in docs/runbook.md says what to do", slog.String("tenant_id", rule.TenantID), slog.String("rule_id", rule.ID.String()),
			slog.Int64("missing", result.Missing), slog.String("sample", fmt.Sprint(result.MissingSample)))
	}
	return nil
}
