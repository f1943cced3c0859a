package api

import (
	"context"
	"fmt"
	"time"

	"tocsin/evaluator/preview"
)

// PreviewRuleEdit answers POST /rules/{id}/preview/difference.
func (s *server) PreviewRuleEdit(ctx context.Context, req PreviewRuleEditRequestObject) (PreviewRuleEditResponseObject, error) {
	last, err := hoursOf(req.Body.Hours)
	if err != nil {
		return nil, err
	}
	r, err := s.Rules.Get(ctx, tenantOf(ctx), req.ID)
	if err != nil {
		return nil, fmt.Errorf("preview edit: %w", err)
	}
	d, _, err := s.checkedDefinition(ctx, &req.Body.Definition)
	if err != nil {
		return nil, inside("definition.", err)
	}
	leave, err := s.enterPreview(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	before := preview.Request{TenantID: tenantOf(ctx), Definition: r.Definition, RuleID: r.ID, Version: r.Version, Last: last}
	after := before
	after.Definition, after.Version = d, r.Version+1
	found, err := s.Previewer.Difference(ctx, before, after)
	if err != nil {
		return nil, inside("definition.", fromSource("preview edit", err))
	}
	return PreviewRuleEdit200JSONResponse{
		From: time.Unix(0, found.FromNS).UTC(), To: time.Unix(0, found.ToNS).UTC(), CoveredFrom: time.Unix(0, found.CoveredFromNS).UTC(),
		Truncated: found.Truncated, Scanned: int64(found.Scanned), Before: found.Before, After: found.After,
		Added: changedAnswer(&found.Added), Removed: changedAnswer(&found.Removed),
	}, nil
}

func changedAnswer(c *preview.Changed) ChangedAlerts {
	answer := ChangedAlerts{Alerts: c.Alerts, Newest: make([]Alert, len(c.Newest))}
	for i := range c.Newest {
		answer.Newest[i] = listedAlert(&c.Newest[i])
	}
	return answer
}
