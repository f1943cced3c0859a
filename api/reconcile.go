package api

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator/reconcile"
)

// Reconciler compares a rule's alerts with the exchanges that match.
type Reconciler interface {
	// Rule compares the last stretch of time of one rule. A rule that counts is a
	// fault of kind Conflict.
	Rule(ctx context.Context, tenant string, id uuid.UUID, last time.Duration) (reconcile.Reconciliation, error)
}

// Bounds of the hours that a reconciliation looks back.
const (
	defaultReconcileHours = 24
	maxReconcileHours     = 168
)

// ReconcileRule answers POST /rules/{id}/reconcile.
func (s *server) ReconcileRule(ctx context.Context, req ReconcileRuleRequestObject) (ReconcileRuleResponseObject, error) {
	hours := defaultReconcileHours
	if req.Params.Hours != nil {
		hours = *req.Params.Hours
	}
	if hours < 1 || hours > maxReconcileHours {
		return nil, invalidField("hours", "out_of_range", fmt.Sprintf("Must be at least 1 and at most %d", maxReconcileHours))
	}
	r, err := s.Reconciler.Rule(ctx, tenantOf(ctx), req.ID, time.Duration(hours)*time.Hour)
	if err != nil {
		return nil, fmt.Errorf("reconcile rule: %w", err)
	}
	return ReconcileRule200JSONResponse{
		RuleID: r.RuleID, From: time.Unix(0, r.FromNS).UTC(), To: time.Unix(0, r.ToNS).UTC(),
		Matching: r.Matching, Alerted: r.Alerted, Missing: r.Missing, MissingSample: listed(r.MissingSample),
		LateDropped: r.LateDropped, OutOfReach: r.LateDropped, Unexpected: r.Unexpected,
	}, nil
}
