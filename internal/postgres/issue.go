package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/internal/postgres/pgq"
	"tocsin/rules"
)

const (
	// mostRegressions and mostPlaces bound the lists of an issue.
	mostRegressions = 20
	mostPlaces      = 50
)

// Issue returns what is known about an issue.
func (s *Inbox) Issue(ctx context.Context, tenant string, key api.IssueKey) (issue api.IssueRecord, err error) {
	// All queries use one snapshot, so that their results agree.
	err = s.db.begun(ctx, "begin isolation level repeatable read read only", func(tx pgx.Tx) error {
		q := s.db.queries.WithTx(tx)
		if err := issueRules(ctx, q, tenant, key, &issue); err != nil {
			return err
		}
		if err := issueTrends(ctx, q, tenant, key, &issue); err != nil {
			return err
		}
		if err := issuePast(ctx, q, tenant, key, &issue); err != nil {
			return err
		}
		return issuePlaces(ctx, q, tenant, key, &issue)
	})
	return issue, err
}

func issueRules(ctx context.Context, q *pgq.Queries, tenant string, key api.IssueKey, issue *api.IssueRecord) error {
	rows, err := q.IssueRules(ctx, pgq.IssueRulesParams{
		TenantID: tenant, Signature: key.Signature, Application: key.Application, Route: key.Route,
	})
	if err != nil {
		return fmt.Errorf("count alerts of issue: %w", err)
	}
	if len(rows) == 0 {
		return noSuch("issue")
	}
	rank := int32(0)
	for _, row := range rows {
		issue.Rules = append(issue.Rules, api.IssueRule{ID: row.RuleID, Name: row.Name, Alerts: row.Firing + row.Acknowledged + row.Resolved})
		issue.Counts.Firing += row.Firing
		issue.Counts.Acknowledged += row.Acknowledged
		issue.Counts.Resolved += row.Resolved
		if issue.FirstAt.IsZero() || row.FirstAt.Before(issue.FirstAt) {
			issue.FirstAt = row.FirstAt
		}
		if row.NewestAt.After(issue.NewestAt) {
			issue.NewestAt = row.NewestAt
		}
		rank = max(rank, row.Rank)
	}
	issue.Severity = severityOf(int64(rank))
	return nil
}

func severityOf(rank int64) rules.Severity {
	return [...]rules.Severity{rules.Info, rules.Warning, rules.Critical}[rank]
}

func issueTrends(ctx context.Context, q *pgq.Queries, tenant string, key api.IssueKey, issue *api.IssueRecord) error {
	rows, err := q.IssueHours(ctx, pgq.IssueHoursParams{
		TenantID: tenant, Signature: key.Signature, Application: key.Application, Route: key.Route, Since: api.IssueDays * 24 * time.Hour,
	})
	if err != nil {
		return fmt.Errorf("count trend of issue: %w", err)
	}
	for _, row := range rows {
		hours := int(row.Hours)
		if hours < alerts.TrendHours {
			issue.Hours[alerts.TrendHours-1-hours] = row.Alerts
		}
		if day := hours / 24; day < api.IssueDays {
			issue.Days[api.IssueDays-1-day] += row.Alerts
		}
	}
	return nil
}

func issuePast(ctx context.Context, q *pgq.Queries, tenant string, key api.IssueKey, issue *api.IssueRecord) error {
	rows, err := q.IssueRegressions(ctx, pgq.IssueRegressionsParams{
		TenantID: tenant, Signature: key.Signature, Application: key.Application, Route: key.Route, Most: mostRegressions,
	})
	if err != nil {
		return fmt.Errorf("find regressions of issue: %w", err)
	}
	for _, row := range rows {
		issue.RegressionCount = row.Regressions
		issue.Regressions = append(issue.Regressions, api.IssueRegression{AlertID: row.AlertID, At: row.FiredAt, ResolvedAt: row.OverAt})
	}
	last, err := q.IssueLastResolution(ctx, pgq.IssueLastResolutionParams{
		TenantID: tenant, Signature: key.Signature, Application: key.Application, Route: key.Route,
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find last resolution of issue: %w", err)
	}
	issue.LastResolution = &api.IssueResolution{AlertID: last.AlertID, At: *last.ResolvedAt, By: last.ResolvedBy}
	return nil
}

func issuePlaces(ctx context.Context, q *pgq.Queries, tenant string, key api.IssueKey, issue *api.IssueRecord) error {
	if key.Signature == "" {
		return nil
	}
	rows, err := q.IssuePlaces(ctx, pgq.IssuePlacesParams{TenantID: tenant, Signature: key.Signature, Most: mostPlaces})
	if err != nil {
		return fmt.Errorf("find places of issue: %w", err)
	}
	for _, row := range rows {
		issue.PlaceCount = row.Places
		issue.Places = append(issue.Places, api.IssuePlace{
			Application: row.Application, Route: row.Route, Alerts: row.Alerts, Firing: row.Firing, NewestAt: row.NewestAt,
		})
	}
	return nil
}
