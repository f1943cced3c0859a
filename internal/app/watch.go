package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator"
	"tocsin/internal/fault"
	"tocsin/internal/postgres"
)

// watch compares the exchanges of the last hour with alerts, now and then, by
// one of all replicas at a time. What it finds is stored, so that each replica
// shows the same, and logged.
type watch struct {
	store      *postgres.Reconciliation
	reconciler *evaluator.Reconciler
	every      time.Duration
	logger     *slog.Logger
}

const (
	// watchLast is how far a pass looks back.
	watchLast = time.Hour
	// watchMost bounds the rules of a pass, each of which costs a query or two.
	// Where there are more, the next pass goes on after them.
	watchMost = 200
	// watchConfirm is how long what is missing may still be found.
	watchConfirm = 30 * time.Second
)

func newWatch(store *postgres.Reconciliation, source evaluator.MatchSource, every time.Duration, logger *slog.Logger) *watch {
	return &watch{
		store: store, every: every, logger: logger,
		reconciler: &evaluator.Reconciler{Source: source, Alerts: store, Confirm: min(watchConfirm, every)},
	}
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
		// A pass of another replica that is nearly as old as that was this one's.
		_, err := w.store.Pass(ctx, w.every/2, w.pass)
		if err != nil && ctx.Err() == nil {
			w.logger.WarnContext(ctx, "exchanges not compared with alerts", slog.Any("error", err))
		}
	}
}

func (w *watch) pass(ctx context.Context, after uuid.UUID) (postgres.ReconcilePass, error) {
	rules, err := w.store.Rules(ctx, after, watchMost)
	if err != nil {
		return postgres.ReconcilePass{}, err
	}
	var pass postgres.ReconcilePass
	for _, rule := range rules {
		result, err := w.reconciler.Rule(ctx, rule.TenantID, rule.ID, watchLast)
		switch {
		case fault.KindOf(err) == fault.NotFound:
			continue // deleted meanwhile
		case ctx.Err() != nil:
			return pass, err
		case err != nil:
			// One that cannot be compared, as it cannot be evaluated, hides no other.
			w.logger.WarnContext(ctx, "rule not compared", slog.String("rule_id", rule.ID.String()), slog.Any("error", err))
			continue
		}
		pass.Rules++
		pass.Missing += result.Missing
		if result.Missing > 0 {
			w.logger.ErrorContext(ctx, "exchanges that match have no alert", slog.String("rule_id", rule.ID.String()),
				slog.Int64("missing", result.Missing), slog.String("sample", fmt.Sprint(result.MissingSample)))
		}
	}
	if len(rules) == watchMost {
		pass.Next = rules[len(rules)-1].ID
	}
	return pass, nil
}
