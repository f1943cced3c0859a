package api

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Activity counts recent alerts.
type Activity interface {
	// Raised counts the alerts about exchanges raised in the hour that ends with the present
	// minute, by Postgres's clock.
	Raised(ctx context.Context, tenant string) (Raised, error)
	// RaisedBy counts the alerts of one rule in the 24 hours that end with the present step of
	// [DayStep], by Postgres's clock.
	RaisedBy(ctx context.Context, tenant string, rule uuid.UUID) (RaisedDay, error)
}

const (
	// DayStep is a step of [RaisedDay].
	DayStep = 15 * time.Minute
	// DaySteps is how many steps a [RaisedDay] has.
	DaySteps = 96
)

// RaisedDay counts alerts by the step in which they were raised, oldest first.
type RaisedDay struct {
	From time.Time
	// Complete is false if there are too many alerts to count; then the oldest are left out.
	Complete bool
	Steps    [DaySteps]int64
}

// RaisedMinutes is how many minutes [Raised] covers.
const RaisedMinutes = 60

// Raised counts alerts by the minute in which they were raised, oldest first.
type Raised struct {
	From time.Time
	// Complete is false if there are too many alerts to count; then the oldest are left out.
	Complete bool
	// Rules has no entry for a rule that raised no alert.
	Rules map[uuid.UUID]*[RaisedMinutes]int64
}

// GetRuleActivity answers GET /rules/{id}/activity.
func (s *server) GetRuleActivity(ctx context.Context, req GetRuleActivityRequestObject) (GetRuleActivityResponseObject, error) {
	rule, err := s.namedRule(ctx, req.ID)
	if err != nil {
		return nil, err
	}
	day, err := s.Activity.RaisedBy(ctx, tenantOf(ctx), rule.ID)
	if err != nil {
		return nil, fmt.Errorf("read activity: %w", err)
	}
	return GetRuleActivity200JSONResponse{
		From: day.From.UTC(), BucketSeconds: int(DayStep.Seconds()), Complete: day.Complete, Buckets: day.Steps[:],
	}, nil
}

// GetAlertActivity answers GET /alerts/activity.
func (s *server) GetAlertActivity(ctx context.Context, _ GetAlertActivityRequestObject) (GetAlertActivityResponseObject, error) {
	raised, err := s.Activity.Raised(ctx, tenantOf(ctx))
	if err != nil {
		return nil, fmt.Errorf("read activity: %w", err)
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
