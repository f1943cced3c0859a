package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/internal/postgres/pgq"
)

// mostRaised bounds how many alerts are read to count those of an hour.
const mostRaised = 100_000

// RaisedBy counts the alerts of a rule in the last 24 hours.
func (s *Inbox) RaisedBy(ctx context.Context, tenant string, rule uuid.UUID) (api.RaisedDay, error) {
	rows, err := s.db.queries.AlertDay(ctx, pgq.AlertDayParams{TenantID: tenant, RuleID: rule, Most: mostRaised})
	if err != nil {
		return api.RaisedDay{}, fmt.Errorf("count alerts of rule: %w", err)
	}
	var day api.RaisedDay
	var total int64
	for _, row := range rows {
		day.From = row.Since
		// An alert that fired after the statement began its step belongs to that step.
		day.Steps[min(int(row.Step), api.DaySteps-1)] += row.Alerts
		total += row.Alerts
	}
	day.Complete = total < mostRaised
	return day, nil
}

// Raised counts the alerts of the last hour by rule and minute.
func (s *Inbox) Raised(ctx context.Context, tenant string) (api.Raised, error) {
	rows, err := s.db.queries.AlertActivity(ctx, pgq.AlertActivityParams{TenantID: tenant, Most: mostRaised})
	if err != nil {
		return api.Raised{}, fmt.Errorf("count alerts by minute: %w", err)
	}
	raised := api.Raised{Rules: map[uuid.UUID]*[api.RaisedMinutes]int64{}}
	var total int64
	for _, row := range rows {
		raised.From = row.Since
		if row.RuleID == nil {
			continue
		}
		minutes := raised.Rules[*row.RuleID]
		if minutes == nil {
			minutes = new([api.RaisedMinutes]int64)
			raised.Rules[*row.RuleID] = minutes
		}
		// An alert that fired after the statement began its minute belongs to that minute.
		minutes[min(int(row.Minute), api.RaisedMinutes-1)] += row.Alerts
		total += row.Alerts
	}
	raised.Complete = total < mostRaised
	return raised, nil
}
