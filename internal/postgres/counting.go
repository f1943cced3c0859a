package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/evaluator"
	"tocsin/internal/postgres/pgq"
)

// OpenAlerts returns the state of the alerts of window rules.
func (s *Evaluation) OpenAlerts(ctx context.Context, ruleIDs []uuid.UUID) ([]evaluator.OpenAlert, error) {
	rows, err := s.db.queries.AlertOpen(ctx, ruleIDs)
	if err != nil {
		return nil, fmt.Errorf("read open alerts: %w", err)
	}
	list := make([]evaluator.OpenAlert, len(rows))
	for i, row := range rows {
		list[i] = evaluator.OpenAlert{ID: row.AlertID, RuleID: row.RuleID, Group: row.GroupKey}
		list[i].State, list[i].Since = alerts.State(row.State), row.FiredAt
		if row.NotifiedAt != nil {
			list[i].NotifiedAt = *row.NotifiedAt
		}
	}
	return list, nil
}

// applyChanges makes the steps of window rules. A step whose alert no longer stands where
// it leads from is left out, with its notifications.
func applyChanges(ctx context.Context, q *pgq.Queries, changes []evaluator.Change) (inserted, changed []uuid.UUID, notifications map[uuid.UUID]int, err error) {
	notifications = map[uuid.UUID]int{}
	for i := range changes {
		change := &changes[i]
		made, err := applyStep(ctx, q, change)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("%s alert: %w", change.Step, err)
		}
		if made == 0 {
			continue
		}
		switch change.Step {
		case alerts.Wait, alerts.Raise:
			inserted = append(inserted, change.Instance.ID)
		case alerts.Stay, alerts.Fire, alerts.Remind, alerts.Clear, alerts.Drop:
			changed = append(changed, change.Instance.ID)
		}
		for _, n := range change.Notifications {
			err := owe(ctx, q, pgq.NotificationOweParams{
				NotificationID: n.ID, TenantID: n.TenantID, AlertID: n.AlertID, RuleID: n.RuleID,
				WebhookID: n.WebhookID, Reason: string(n.Reason),
			})
			if err != nil {
				return nil, nil, nil, err
			}
			notifications[n.WebhookID]++
		}
	}
	return inserted, changed, notifications, nil
}

func applyStep(ctx context.Context, q *pgq.Queries, change *evaluator.Change) (made int64, err error) {
	a := &change.Instance
	count, err := json.Marshal(a.Count)
	if err != nil {
		return 0, fmt.Errorf("encode count: %w", err)
	}
	exchange, err := json.Marshal(a.Exchange)
	if err != nil {
		return 0, fmt.Errorf("encode exchange: %w", err)
	}
	switch change.Step {
	case alerts.Wait, alerts.Raise:
		state := alerts.Firing
		if change.Step == alerts.Wait {
			state = alerts.Pending
		}
		return q.AlertRaise(ctx, pgq.AlertRaiseParams{
			AlertID: a.ID, TenantID: a.TenantID, RuleID: a.RuleID, RuleVersion: a.RuleVersion, Severity: string(a.Severity),
			State: string(state), Title: a.Title, Message: a.Message, GroupKey: a.Count.Group, Count: count,
			StartTimeNs: a.Exchange.StartTimeNS, Application: a.Exchange.Application, Route: a.Exchange.Route, Exchange: exchange,
		})
	case alerts.Fire:
		return q.AlertFire(ctx, pgq.AlertFireParams{
			Title: a.Title, Message: a.Message, Count: count, StartTimeNs: a.Exchange.StartTimeNS,
			Application: a.Exchange.Application, Route: a.Exchange.Route, Exchange: exchange, AlertID: a.ID,
		})
	case alerts.Remind:
		return q.AlertRemind(ctx, pgq.AlertRemindParams{
			Title: a.Title, Message: a.Message, Count: count, StartTimeNs: a.Exchange.StartTimeNS,
			Application: a.Exchange.Application, Route: a.Exchange.Route, Exchange: exchange, AlertID: a.ID,
		})
	case alerts.Clear:
		return q.AlertClear(ctx, pgq.AlertClearParams{Count: count, AlertID: a.ID})
	case alerts.Drop:
		return q.AlertDrop(ctx, a.ID)
	case alerts.Stay:
	}
	return 0, nil
}

// owe records one notification and owes it.
func owe(ctx context.Context, q *pgq.Queries, p pgq.NotificationOweParams) error {
	owed, err := q.NotificationOwe(ctx, p)
	if err == nil && owed == 0 {
		err = errNoWebhook
	}
	if err != nil {
		return fmt.Errorf("owe notification: %w", err)
	}
	return nil
}
