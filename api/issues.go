package api

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/rules"
)

// Issues reads an issue over all its alerts, and what people write about issues and rules.
type Issues interface {
	// Issue returns an issue. An issue without alerts is a fault of kind NotFound.
	Issue(ctx context.Context, tenant string, key IssueKey) (IssueRecord, error)
	// WriteNote adds a note, at Postgres's time. If the note was written before, by its id, it is
	// returned unchanged. An id of a different note is a conflict. An issue without alerts is not
	// found; a rule that was deleted is a conflict.
	WriteNote(ctx context.Context, tenant string, on NoteSubject, note NoteRecord) (NoteRecord, error)
	// Notes returns notes, newest first.
	Notes(ctx context.Context, tenant string, on NoteSubject, page NotePage) ([]NoteRecord, error)
	NoteAuthor(ctx context.Context, tenant string, id uuid.UUID) (string, error)
	DeleteNote(ctx context.Context, tenant string, id uuid.UUID) error
}

// IssueKey identifies an issue: the alerts about exchanges of one application and route that failed
// with the same signature.
type IssueKey struct{ Application, Route, Signature string }

// check refuses names that a store cannot compare.
func (k IssueKey) check() error {
	return cmp.Or(
		texts("application", []string{k.Application}, maxNameBytes),
		texts("route", []string{k.Route}, maxNameBytes),
		texts("signature", []string{k.Signature}, maxNameBytes),
	)
}

// IssueDays is how many days the long trend of an issue covers.
const IssueDays = 14

// IssueRecord describes an issue. Pending alerts do not count.
type IssueRecord struct {
	Severity          rules.Severity
	Counts            alerts.Counts
	FirstAt, NewestAt time.Time
	// Hours and Days count the alerts that fired in each of the last hours and days before the
	// present, oldest first.
	Hours [alerts.TrendHours]int64
	Days  [IssueDays]int64
	// Rules are the rules that raised its alerts, most alerts first.
	Rules []IssueRule
	// Places are where exchanges fail in the same way, most alerts first; not all of them if there
	// are very many. PlaceCount is the number of all. Both are empty for alerts without an error,
	// which have nothing in common.
	Places     []IssuePlace
	PlaceCount int64
	// LastResolution is nil if no alert is resolved.
	LastResolution *IssueResolution
	// Regressions are the newest alerts that fired when all earlier ones were resolved, newest
	// first. RegressionCount is the number of all.
	Regressions     []IssueRegression
	RegressionCount int64
}

// IssueRule is a rule that raised alerts of an issue.
type IssueRule struct {
	ID     uuid.UUID
	Name   string
	Alerts int64
}

// IssuePlace is an application and route in which exchanges fail in the same way.
type IssuePlace struct {
	Application, Route string
	Alerts, Firing     int64
	NewestAt           time.Time
}

// IssueResolution is who resolved an alert of an issue; By is empty if no person did.
type IssueResolution struct {
	AlertID uuid.UUID
	At      time.Time
	By      string
}

// IssueRegression is an alert that fired at At, after the last of the earlier ones was resolved at
// ResolvedAt.
type IssueRegression struct {
	AlertID        uuid.UUID
	At, ResolvedAt time.Time
}

// GetIssue answers GET /alerts/issue.
func (s *server) GetIssue(ctx context.Context, req GetIssueRequestObject) (GetIssueResponseObject, error) {
	key := IssueKey{Application: req.Params.Application, Route: req.Params.Route, Signature: req.Params.Signature}
	if err := key.check(); err != nil {
		return nil, err
	}
	issue, err := s.Issues.Issue(ctx, tenantOf(ctx), key)
	if err != nil {
		return nil, fmt.Errorf("read issue: %w", err)
	}
	return GetIssue200JSONResponse(issueAnswer(key, &issue)), nil
}

func issueAnswer(key IssueKey, issue *IssueRecord) Issue {
	answer := Issue{
		Application: key.Application, Route: key.Route, Signature: key.Signature, Severity: issue.Severity,
		Firing: issue.Counts.Firing, Acknowledged: issue.Counts.Acknowledged, Resolved: issue.Counts.Resolved,
		Count:   issue.Counts.Firing + issue.Counts.Acknowledged + issue.Counts.Resolved,
		FirstAt: issue.FirstAt.UTC(), NewestAt: issue.NewestAt.UTC(),
		Trend: issue.Hours[:], Days: issue.Days[:],
		Rules:  make([]IssueRuleCount, len(issue.Rules)),
		Places: make([]IssuePlaceCount, len(issue.Places)), PlaceCount: issue.PlaceCount,
		Regressions: make([]Regression, len(issue.Regressions)), RegressionCount: issue.RegressionCount,
	}
	for i, r := range issue.Rules {
		answer.Rules[i] = IssueRuleCount{RuleID: r.ID, RuleName: r.Name, Count: r.Alerts}
	}
	for i, p := range issue.Places {
		answer.Places[i] = IssuePlaceCount{Application: p.Application, Route: p.Route, Count: p.Alerts, Firing: p.Firing, NewestAt: p.NewestAt.UTC()}
	}
	for i, r := range issue.Regressions {
		answer.Regressions[i] = Regression{AlertID: r.AlertID, At: r.At.UTC(), ResolvedAt: r.ResolvedAt.UTC()}
	}
	if r := issue.LastResolution; r != nil {
		answer.LastResolution = &Resolution{AlertID: r.AlertID, At: r.At.UTC(), By: optional(r.By)}
	}
	return answer
}
