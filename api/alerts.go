package api

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"tocsin/alerts"
	"tocsin/rules"
)

const (
	maxNameBytes = 1024
	maxTextBytes = 800
)

// ListAlerts answers GET /alerts.
func (s *server) ListAlerts(ctx context.Context, req ListAlertsRequestObject) (ListAlertsResponseObject, error) {
	q, err := alertQuery(req.Params)
	if err != nil {
		return nil, err
	}
	found, err := s.Inbox.List(ctx, tenantOf(ctx), q)
	if err != nil {
		return nil, fmt.Errorf("list alerts: %w", err)
	}
	answer := ListAlerts200JSONResponse{Items: make([]Alert, len(found))}
	for i := range found {
		answer.Items[i] = alertAnswer(&found[i])
		if e := answer.Items[i].Exchange; e != nil {
			e.ErrorStack, e.Attributes = nil, nil
		}
	}
	answer.NextCursor, err = nextCursor(len(found), q.Limit, func() mark {
		last := &found[len(found)-1]
		return mark{List: listAlerts, At: last.FiredAt.UTC(), ID: last.ID}
	})
	return answer, err
}

func alertQuery(p ListAlertsParams) (q alerts.Query, err error) {
	if q.Limit, err = limitOf(p.Limit); err != nil {
		return q, err
	}
	m, err := decodeMark(listAlerts, p.Cursor)
	if err != nil {
		return q, err
	}
	if m != nil {
		q.Before = &alerts.Mark{FiredAt: m.At, ID: m.ID}
	}
	if q.States, err = oneOf("state", p.State, alerts.States()...); err != nil {
		return q, err
	}
	if len(q.States) == 0 {
		q.States = []alerts.State{alerts.Firing, alerts.Acknowledged, alerts.Resolved}
	}
	if q.Severities, err = oneOf("severity", p.Severity, rules.Critical, rules.Warning, rules.Info); err != nil {
		return q, err
	}
	if q.Applications, err = texts("application", p.Application, maxNameBytes); err != nil {
		return q, err
	}
	if q.Routes, err = texts("route", p.Route, maxNameBytes); err != nil {
		return q, err
	}
	q.Rules, q.Text = deref(p.RuleID), deref(p.Q)
	_, err = texts("q", &[]string{q.Text}, maxTextBytes)
	return q, err
}

// CountAlerts answers GET /alerts/counts.
func (s *server) CountAlerts(ctx context.Context, _ CountAlertsRequestObject) (CountAlertsResponseObject, error) {
	counts, err := s.Inbox.Counts(ctx, tenantOf(ctx))
	if err != nil {
		return nil, fmt.Errorf("count alerts: %w", err)
	}
	return CountAlerts200JSONResponse(countsAnswer(counts)), nil
}

// GetAlert answers GET /alerts/{id}.
func (s *server) GetAlert(ctx context.Context, req GetAlertRequestObject) (GetAlertResponseObject, error) {
	a, err := s.Inbox.Get(ctx, tenantOf(ctx), req.ID)
	if err != nil {
		return nil, fmt.Errorf("get alert: %w", err)
	}
	return GetAlert200JSONResponse(alertAnswer(&a)), nil
}

// AcknowledgeAlert answers POST /alerts/{id}/acknowledge.
func (s *server) AcknowledgeAlert(ctx context.Context, req AcknowledgeAlertRequestObject) (AcknowledgeAlertResponseObject, error) {
	a, err := s.act(ctx, Deed{AlertID: req.ID, Action: alerts.Acknowledge})
	return AcknowledgeAlert200JSONResponse(a), err
}

// ResolveAlert answers POST /alerts/{id}/resolve.
func (s *server) ResolveAlert(ctx context.Context, req ResolveAlertRequestObject) (ResolveAlertResponseObject, error) {
	a, err := s.act(ctx, Deed{AlertID: req.ID, Action: alerts.Resolve})
	return ResolveAlert200JSONResponse(a), err
}

// act does a deed in the caller's name, and lets open pages know at once.
func (s *server) act(ctx context.Context, deed Deed) (Alert, error) {
	who := identityOf(ctx)
	deed.Actor = who.Actor
	a, err := s.Inbox.Act(ctx, who.Tenant, deed)
	if err != nil {
		return Alert{}, fmt.Errorf("%s alert: %w", deed.Action, err)
	}
	s.hub.nudge(who.Tenant)
	return alertAnswer(&a), nil
}

// ListAlertNotifications answers GET /alerts/{id}/notifications.
func (s *server) ListAlertNotifications(ctx context.Context, req ListAlertNotificationsRequestObject) (ListAlertNotificationsResponseObject, error) {
	found, err := s.Notifications.OfAlert(ctx, tenantOf(ctx), req.ID)
	if err != nil {
		return nil, fmt.Errorf("list notifications of alert: %w", err)
	}
	answer := ListAlertNotifications200JSONResponse{Items: make([]Notification, len(found))}
	for i := range found {
		answer.Items[i] = notificationAnswer(&found[i], true)
	}
	return answer, nil
}

func alertAnswer(a *alerts.Instance) Alert {
	return Alert{
		ID:             a.ID,
		RuleID:         a.RuleID,
		RuleName:       a.RuleName,
		RuleVersion:    a.RuleVersion,
		Severity:       a.Severity,
		State:          a.State,
		Title:          a.Title,
		Message:        a.Message,
		Count:          countAnswer(a.Count),
		Health:         a.Health,
		WebhookID:      optional(a.WebhookID),
		Exchange:       exchangeAnswer(a),
		Late:           optional(a.Late),
		LateBySeconds:  seconds(a.LateBy),
		FiredAt:        a.FiredAt.UTC(),
		AcknowledgedAt: utc(a.AcknowledgedAt),
		AcknowledgedBy: optional(a.AcknowledgedBy),
		ResolvedAt:     utc(a.ResolvedAt),
		ResolvedBy:     optional(a.ResolvedBy),
	}
}

func countAnswer(c *alerts.Count) *WindowCount {
	if c == nil {
		return nil
	}
	answer := WindowCount{Observed: c.Observed, Threshold: c.Threshold, WindowSeconds: c.WindowSeconds, GroupBy: c.GroupBy}
	if c.GroupBy != rules.GroupByNothing {
		answer.Group = &c.Group
	}
	return &answer
}

// exchangeAnswer returns nil for a count of which no exchange is known.
func exchangeAnswer(a *alerts.Instance) *Exchange {
	e := &a.Exchange
	if a.Health || a.Count != nil && e.ExecutionID == "" && e.StartTimeNS == 0 {
		return nil
	}
	answer := &Exchange{
		ExecutionID:   e.ExecutionID,
		StartTime:     time.Unix(0, e.StartTimeNS).UTC(),
		Environment:   e.Environment,
		Application:   e.Application,
		Route:         e.Route,
		Status:        e.Status,
		DurationNs:    strconv.FormatInt(e.DurationNS, 10),
		ErrorType:     e.ErrorType,
		ErrorMessage:  e.ErrorMessage,
		CorrelationID: e.CorrelationID,
		ErrorStack:    optional(e.ErrorStack),
		Attributes:    e.Attributes,
	}
	if e.EndTimeNS != nil {
		end := time.Unix(0, *e.EndTimeNS).UTC()
		answer.EndTime = &end
	}
	return answer
}

func countsAnswer(c alerts.Counts) AlertCounts {
	return AlertCounts{Pending: c.Pending, Firing: c.Firing, Acknowledged: c.Acknowledged, Resolved: c.Resolved}
}
