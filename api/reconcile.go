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
	// Rule compares one rule over the time last.
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
		return nil, invalidField("hours", "out_of_range", fmt.Sprintf("Must be from 1 to %d", maxReconcileHours))
	}
	r, err := s.Reconciler.Rule(ctx, tenantOf(ctx), req.ID, time.Duration(hours)*time.Hour)
	if err != nil {
		return nil, fmt.Errorf("reconcile rule: %w", err)
	}
	answer := ReconcileRule200JSONResponse{
		RuleID: r.RuleID, From: time.Unix(0, r.FromNS).UTC(), To: time.Unix(0, r.ToNS).UTC(),
		Matching: r.Matching, Alerted: r.Alerted, Missing: r.Missing, MissingSample: listed(r.MissingSample),
		LateDropped: r.LateDropped, OutOfReach: r.LateDropped, Unexpected: r.Unexpected,
		Different: &r.Different, Late: &r.Late, LateBySeconds: new(float32(r.LateBy.Seconds())), Unchecked: &r.Unchecked,
	}
	findings := make([]ReconciliationFinding, len(r.Findings))
	for i := range r.Findings {
		findings[i] = findingAnswer(&r.Findings[i])
	}
	answer.Findings = &findings
	return answer, nil
}

func findingAnswer(f *reconcile.Finding) ReconciliationFinding {
	answer := ReconciliationFinding{Kind: ReconciliationFindingKind(f.Kind), Why: f.Why}
	if f.AtNS != 0 {
		answer.Group, answer.At = &f.Group, new(time.Unix(0, f.AtNS).UTC())
	}
	if f.AlertID != uuid.Nil {
		answer.AlertID = &f.AlertID
		answer.StoredObserved, answer.StoredVolume = &f.Stored.Observed, &f.Stored.Volume
		answer.FoundObserved, answer.FoundVolume = &f.Found.Observed, &f.Found.Volume
	}
	if f.Kind == reconcile.Late || f.LateBy > 0 {
		answer.LateBySeconds = new(float32(f.LateBy.Seconds()))
	}
	return answer
}
