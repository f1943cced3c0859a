package api

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tocsin/alerts"
	"tocsin/rules"
)

const (
	maxNameBytes = 1024
	maxTextBytes = 800
	// maxRepeated bounds the number of values of one repeated parameter.
	maxRepeated = 100
	// maxListed bounds the number of ids in one list.
	maxListed = 200
	// maxAttributes bounds the number of attributes in one filter.
	maxAttributes = 20
)

// ListAlerts answers GET /alerts.
func (s *server) ListAlerts(ctx context.Context, req ListAlertsRequestObject) (ListAlertsResponseObject, error) {
	p := &req.Params
	q, err := s.alertQuery(ctx, p)
	if err != nil {
		return nil, err
	}
	asOf, err := s.Reading.AsOf(ctx)
	if err != nil {
		return nil, fmt.Errorf("list alerts: %w", err)
	}
	page, err := s.Inbox.List(ctx, tenantOf(ctx), q)
	if err != nil {
		return nil, fmt.Errorf("list alerts: %w", err)
	}
	answer := ListAlerts200JSONResponse{Items: make([]Alert, len(page.Alerts)), AsOf: asOf.UTC()}
	for i := range page.Alerts {
		answer.Items[i] = listedAlert(&page.Alerts[i])
	}
	if err := s.annotate(ctx, answer.Items); err != nil {
		return nil, err
	}
	if page.Next == nil {
		return answer, nil
	}
	if len(page.Alerts) < q.Limit {
		answer.SearchedTo = utc(&page.Next.FiredAt)
	}
	text, err := mark{List: listAlerts, At: page.Next.FiredAt.UTC(), ID: page.Next.ID}.encode()
	answer.NextCursor = &text
	return answer, err
}

// listedAlert leaves out the fields that only the answer for one alert has.
func listedAlert(a *alerts.Instance) Alert {
	answer := alertAnswer(a)
	if e := answer.Exchange; e != nil {
		e.ErrorStack, e.Attributes = nil, nil
	}
	return answer
}

func (s *server) alertQuery(ctx context.Context, p *ListAlertsParams) (q alerts.Query, err error) {
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
	q.Filter, err = s.alertFilter(ctx, "", &AlertFilter{
		State: deref(p.State), Severity: deref(p.Severity), RuleID: deref(p.RuleID), Application: deref(p.Application), Route: deref(p.Route),
		Signature: deref(p.Signature), Q: deref(p.Q), Mine: deref(p.Mine), Assignee: deref(p.Assignee), Snoozed: p.Snoozed, Unread: deref(p.Unread), PerExchange: deref(p.PerExchange),
		Environment: deref(p.Environment), ExecutionID: deref(p.ExecutionID), CorrelationID: deref(p.CorrelationID),
		Attribute: deref(p.Attribute), From: p.From, To: p.To,
	})
	if q.IDs = deref(p.ID); err == nil && len(q.IDs) > maxListed {
		err = invalidField("id", "out_of_range", fmt.Sprintf("Must be at most %d IDs", maxListed))
	}
	return q, err
}

// alertFilter converts a filter. path is the prefix of its fields' names in the request.
func (s *server) alertFilter(ctx context.Context, path string, f *AlertFilter) (alerts.Filter, error) {
	out := alerts.Filter{
		States: f.State, Severities: f.Severity, Rules: f.RuleID, Applications: f.Application, Routes: f.Route,
		Signatures: f.Signature, Text: f.Q, Environments: f.Environment, ExecutionID: f.ExecutionID,
		CorrelationID: f.CorrelationID, From: f.From, UpTo: f.To, PerExchange: f.PerExchange,
		Assignees: f.Assignee, Snoozed: f.Snoozed,
	}
	if f.Mine {
		who, err := s.readerOf(ctx)
		if err != nil {
			return out, err
		}
		out.MineOf = who.Targets
	}
	if f.Unread {
		out.UnreadBy = identityOf(ctx).Actor
	}
	if len(out.States) == 0 {
		out.States = []alerts.State{alerts.Firing, alerts.Acknowledged, alerts.Resolved}
	}
	if len(f.RuleID) > maxRepeated {
		return out, invalidField(path+"ruleId", "out_of_range", fmt.Sprintf("Must be at most %d values", maxRepeated))
	}
	_, stateErr := oneOf(path+"state", &f.State, alerts.States()...)
	_, severityErr := oneOf(path+"severity", &f.Severity, rules.Critical, rules.Warning, rules.Info)
	applicationErr := texts(path+"application", f.Application, maxNameBytes)
	routeErr := texts(path+"route", f.Route, maxNameBytes)
	signatureErr := texts(path+"signature", f.Signature, maxNameBytes)
	textErr := texts(path+"q", []string{f.Q}, maxTextBytes)
	assigneeErr := texts(path+"assignee", f.Assignee, maxNameBytes)
	environmentErr := texts(path+"environment", f.Environment, maxNameBytes)
	executionErr := texts(path+"executionId", []string{f.ExecutionID}, maxNameBytes)
	correlationErr := texts(path+"correlationId", []string{f.CorrelationID}, maxNameBytes)
	var attributeErr, timeErr error
	out.Attributes, attributeErr = attributesOf(path+"attribute", f.Attribute)
	if f.From != nil && f.To != nil && f.To.Before(*f.From) {
		timeErr = invalidField(path+"to", "range", "Must not be before from, because no alert could match")
	}
	return out, cmp.Or(stateErr, severityErr, applicationErr, routeErr, signatureErr, textErr, assigneeErr, environmentErr, executionErr,
		correlationErr, attributeErr, timeErr)
}

// attributesOf parses attributes written as key=value.
func attributesOf(field string, values []string) (map[string]string, error) {
	if len(values) > maxAttributes {
		return nil, invalidField(field, "out_of_range", fmt.Sprintf("Must be at most %d values", maxAttributes))
	}
	if err := texts(field, values, 2*maxNameBytes); err != nil {
		return nil, err
	}
	var found map[string]string
	for _, v := range values {
		key, value, split := strings.Cut(v, "=")
		before, twice := found[key]
		switch {
		case !split || key == "":
			return nil, invalidField(field, "text", "Must be a key, an equals sign and a value, such as region=eu")
		case twice && before != value:
			return nil, invalidField(field, "range", fmt.Sprintf("Must not have two values for %q, because no alert could match", key))
		case found == nil:
			found = map[string]string{}
		}
		found[key] = value
	}
	return found, nil
}

// CountAlerts answers GET /alerts/counts.
func (s *server) CountAlerts(ctx context.Context, _ CountAlertsRequestObject) (CountAlertsResponseObject, error) {
	counts, err := s.Inbox.Counts(ctx, tenantOf(ctx))
	if err != nil {
		return nil, fmt.Errorf("count alerts: %w", err)
	}
	unread, err := s.Reading.Unread(ctx, tenantOf(ctx), identityOf(ctx).Actor)
	if err != nil {
		return nil, fmt.Errorf("count alerts: %w", err)
	}
	answer := countsAnswer(counts)
	answer.Unread = &unread
	return CountAlerts200JSONResponse(answer), nil
}

// GetAlert answers GET /alerts/{id}.
func (s *server) GetAlert(ctx context.Context, req GetAlertRequestObject) (GetAlertResponseObject, error) {
	a, err := s.Inbox.Get(ctx, tenantOf(ctx), req.ID)
	if err != nil {
		return nil, fmt.Errorf("get alert: %w", err)
	}
	answer := []Alert{alertAnswer(&a)}
	answer[0].Routing = routingAnswer(a.Routing)
	answer[0].ErrorPattern = optional(alerts.ErrorPattern(&a.Exchange))
	if s.ExchangeURL != nil {
		answer[0].ExchangeURL = optional(s.ExchangeURL(&a))
	}
	if err := s.annotate(ctx, answer); err != nil {
		return nil, err
	}
	return GetAlert200JSONResponse(answer[0]), nil
}

// AcknowledgeAlert answers POST /alerts/{id}/acknowledge.
func (s *server) AcknowledgeAlert(ctx context.Context, req AcknowledgeAlertRequestObject) (AcknowledgeAlertResponseObject, error) {
	a, err := s.act(ctx, AlertAction{AlertID: req.ID, Action: alerts.Acknowledge})
	return AcknowledgeAlert200JSONResponse(a), err
}

// ResolveAlert answers POST /alerts/{id}/resolve.
func (s *server) ResolveAlert(ctx context.Context, req ResolveAlertRequestObject) (ResolveAlertResponseObject, error) {
	a, err := s.act(ctx, AlertAction{AlertID: req.ID, Action: alerts.Resolve})
	return ResolveAlert200JSONResponse(a), err
}

// act acts on behalf of the caller, and notifies open pages at once.
func (s *server) act(ctx context.Context, act AlertAction) (Alert, error) {
	who := identityOf(ctx)
	act.Actor = who.Actor
	a, err := s.Inbox.Act(ctx, who.Tenant, act)
	if err != nil {
		return Alert{}, fmt.Errorf("%s alert: %w", act.Action, err)
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
		Labels:         a.About.Labels,
		Owner:          optional(a.About.Owner),
		RunbookURL:     optional(a.About.RunbookURL),
		Note:           optional(a.About.Note),
		RuleVersion:    a.RuleVersion,
		Severity:       a.Severity,
		State:          a.State,
		Title:          a.Title,
		Message:        a.Message,
		Signature:      a.Signature,
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
		Assignee:       optional(a.Assignee),
		AssignedAt:     utc(a.AssignedAt),
		AssignedBy:     optional(a.AssignedBy),
		SnoozedUntil:   utc(a.SnoozedUntil),
		SnoozedBy:      optional(a.SnoozedBy),
		SnoozedAt:      utc(a.SnoozedAt),
		HeldUntil:      utc(a.HeldUntil),
		Resolution:     resolutionAnswer(a.Resolution),
	}
}

func resolutionAnswer(r *alerts.Resolution) *AlertResolution {
	if r == nil {
		return nil
	}
	answer := AlertResolution{Reason: r.Reason, ExecutionID: optional(r.ExecutionID)}
	if r.StartTimeNS != nil {
		answer.StartedAt = new(time.Unix(0, *r.StartTimeNS).UTC())
	}
	return &answer
}

func countAnswer(c *alerts.Count) *WindowCount {
	if c == nil {
		return nil
	}
	answer := WindowCount{Observed: c.Observed, Threshold: c.Bound(), WindowSeconds: c.WindowSeconds, GroupBy: c.GroupBy, GroupByAttribute: c.GroupByAttribute, FireMode: c.Mode}
	if c.Measured() {
		answer.Value, answer.Volume, answer.MinVolume, answer.Percentile = new(c.Value()), &c.Volume, &c.MinVolume, optional(c.Percentile)
	}
	if c.ShortWindowSeconds > 0 {
		answer.ShortWindowSeconds, answer.ShortValue = &c.ShortWindowSeconds, new(c.ShortValue())
	}
	if c.GroupBy != rules.GroupByNothing {
		answer.Group = &c.Group
	}
	return &answer
}

// exchangeAnswer returns nil for a count without a known exchange.
func exchangeAnswer(a *alerts.Instance) *Exchange {
	e := &a.Exchange
	if a.Health || a.Count != nil && e.ExecutionID == "" {
		return nil
	}
	answer := exchangeOf(e)
	return &answer
}

// exchangeOf converts a cleaned exchange.
func exchangeOf(e *rules.Exchange) Exchange {
	answer := Exchange{
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
