package api

import (
	"bytes"
	"context"
	"fmt"
	"slices"
)

// GetAlertActivity answers GET /alerts/activity.
func (s *server) GetAlertActivity(ctx context.Context, _ GetAlertActivityRequestObject) (GetAlertActivityResponseObject, error) {
	raised, err := s.Activity.Raised(ctx, tenantOf(ctx))
	if err != nil {
		return nil, fmt.Errorf("tell activity: %w", err)
	}
	answer := GetAlertActivity200JSONResponse{
		From: raised.From.UTC(), BucketSeconds: 60, Complete: raised.Complete,
		Buckets: make([]int64, RaisedMinutes), Rules: make([]RuleActivity, 0, len(raised.Rules)),
	}
	for id, minutes := range raised.Rules {
		answer.Rules = append(answer.Rules, RuleActivity{RuleID: id, Buckets: minutes[:]})
		for i, n := range minutes {
			answer.Buckets[i] += n
		}
	}
	slices.SortFunc(answer.Rules, func(a, b RuleActivity) int { return bytes.Compare(a.RuleID[:], b.RuleID[:]) })
	return answer, nil
}
