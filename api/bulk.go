package api

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/internal/fault"
)

// maxSelected bounds the number of alerts that a request names one by one.
const maxSelected = 1000

// AcknowledgeAlerts answers POST /alerts/acknowledge.
func (s *server) AcknowledgeAlerts(ctx context.Context, req AcknowledgeAlertsRequestObject) (AcknowledgeAlertsResponseObject, error) {
	result, err := s.actOnMany(ctx, alerts.Acknowledge, req.Body)
	return AcknowledgeAlerts200JSONResponse(result), err
}

// ResolveAlerts answers POST /alerts/resolve.
func (s *server) ResolveAlerts(ctx context.Context, req ResolveAlertsRequestObject) (ResolveAlertsResponseObject, error) {
	result, err := s.actOnMany(ctx, alerts.Resolve, req.Body)
	return ResolveAlerts200JSONResponse(result), err
}

// actOnMany acts on behalf of the caller, and notifies open pages at once.
func (s *server) actOnMany(ctx context.Context, action alerts.Action, b *AlertSelection) (BulkResult, error) {
	filter, err := s.selection(ctx, b.Ids, b.Filter, b.UpTo)
	if err != nil {
		return BulkResult{}, err
	}
	who := identityOf(ctx)
	if err := s.checkHold(ctx, action, b.HoldUntil); err != nil {
		return BulkResult{}, err
	}
	act := BulkAction{Action: action, Actor: who.Actor, Filter: filter, HoldUntil: b.HoldUntil}
	if act.ID, err = actionID(b.ActionID); err != nil {
		return BulkResult{}, err
	}
	done, err := s.Bulk.ActOnMany(ctx, who.Tenant, act)
	if err != nil {
		return BulkResult{}, fmt.Errorf("%s alerts: %w", action, err)
	}
	s.hub.nudge(who.Tenant)
	return bulkResult(act.ID, done), nil
}

// AssignAlerts answers POST /alerts/assign.
func (s *server) AssignAlerts(ctx context.Context, req AssignAlertsRequestObject) (AssignAlertsResponseObject, error) {
	who, b := identityOf(ctx), req.Body
	if err := checkAssignee(who, b.Assignee); err != nil {
		return nil, err
	}
	filter, err := s.selection(ctx, b.Ids, b.Filter, b.UpTo)
	if err != nil {
		return nil, err
	}
	of := BulkAssignment{Actor: who.Actor, Filter: filter, Assignee: b.Assignee, Reassign: b.Reassign}
	if of.ID, err = actionID(b.ActionID); err != nil {
		return nil, err
	}
	done, err := s.Bulk.AssignMany(ctx, who.Tenant, of)
	if err != nil {
		return nil, fmt.Errorf("assign alerts: %w", err)
	}
	s.hub.nudge(who.Tenant)
	return AssignAlerts200JSONResponse(bulkResult(of.ID, done)), nil
}

// actionID returns the id of an action from a request, or a new one.
func actionID(given *uuid.UUID) (uuid.UUID, error) {
	if id := deref(given); id != uuid.Nil {
		return id, nil
	}
	id, err := uuid.NewV7()
	if err != nil {
		return id, fmt.Errorf("make action id: %w", err)
	}
	return id, nil
}

func bulkResult(id uuid.UUID, done BulkCounts) BulkResult {
	return BulkResult{
		ActionID: id, Changed: done.Changed, Already: done.Already, Refused: done.Refused, Unknown: done.Unknown,
		UndoableUntil: done.UndoableUntil.UTC(),
	}
}

// maxHold is the longest time for which a person can hold a group.
const maxHold = 30 * 24 * time.Hour

// checkHold returns what is wrong with the hold time of an action.
func (s *server) checkHold(ctx context.Context, action alerts.Action, until *time.Time) error {
	switch {
	case until == nil:
		return nil
	case action != alerts.Resolve:
		return invalidField("holdUntil", "not_applicable", "Only a resolved alert can be held; leave it out")
	}
	now, err := s.Clock(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("check hold: %w", err)
	case !until.After(now) || until.After(now.Add(maxHold)):
		return invalidField("holdUntil", "out_of_range", "Must be in the future, at most 30 days from now")
	}
	return nil
}

// selection converts the selection of a request. Alerts that are named one by one may be in any
// state.
func (s *server) selection(ctx context.Context, ids []uuid.UUID, f *AlertFilter, upTo *time.Time) (alerts.Filter, error) {
	switch {
	case (len(ids) > 0) == (f != nil):
		return alerts.Filter{}, fault.New(fault.Invalid, "give either ids or a filter")
	case len(ids) > maxSelected:
		return alerts.Filter{}, invalidField("ids", "out_of_range", fmt.Sprintf("Must be at most %d IDs; select more by a filter", maxSelected))
	case f == nil && upTo != nil:
		return alerts.Filter{}, invalidField("upTo", "not_applicable", "upTo needs a filter; leave it out for ids")
	case f == nil:
		return alerts.Filter{IDs: ids}, nil
	}
	filter, err := s.alertFilter(ctx, "filter.", f)
	if upTo != nil && (filter.UpTo == nil || upTo.Before(*filter.UpTo)) {
		filter.UpTo = upTo
	}
	return filter, err
}

// UndoAlertAction answers POST /alerts/actions/{id}/undo.
func (s *server) UndoAlertAction(ctx context.Context, req UndoAlertActionRequestObject) (UndoAlertActionResponseObject, error) {
	who := identityOf(ctx)
	done, err := s.Bulk.Undo(ctx, who.Tenant, Undo{ActionID: req.ID, Actor: who.Actor})
	if err != nil {
		return nil, fmt.Errorf("undo action: %w", err)
	}
	s.hub.nudge(who.Tenant)
	return UndoAlertAction200JSONResponse{ActionID: req.ID, Restored: done.Restored, Skipped: done.Skipped}, nil
}

// ReadAlerts answers POST /alerts/read.
func (s *server) ReadAlerts(ctx context.Context, req ReadAlertsRequestObject) (ReadAlertsResponseObject, error) {
	b := req.Body
	filter, err := s.selection(ctx, b.Ids, b.Filter, b.UpTo)
	if err != nil {
		return nil, err
	}
	who := identityOf(ctx)
	changed, err := s.Reading.MarkRead(ctx, who.Tenant, ReadMark{
		Actor: who.Actor, Read: !b.Unread, Filter: filter,
		Everything: b.Filter != nil && reflect.ValueOf(*b.Filter).IsZero(),
	})
	if err != nil {
		return nil, fmt.Errorf("mark alerts as read: %w", err)
	}
	return ReadAlerts200JSONResponse{Changed: changed}, nil
}

// GroupAlerts answers GET /alerts/groups.
func (s *server) GroupAlerts(ctx context.Context, req GroupAlertsRequestObject) (GroupAlertsResponseObject, error) {
	p := &req.Params
	by, err := oneOf("by", &[]alerts.Fold{alerts.Fold(p.By)}, alerts.ByRule, alerts.BySignature, alerts.ByIssue)
	if err != nil {
		return nil, err
	}
	list, err := s.alertQuery(ctx, &ListAlertsParams{
		State: p.State, Severity: p.Severity, RuleID: p.RuleID, Application: p.Application, Route: p.Route, Signature: p.Signature,
		Q: p.Q, Mine: p.Mine, Assignee: p.Assignee, Snoozed: p.Snoozed, Unread: p.Unread, Limit: p.Limit, Environment: p.Environment, ExecutionID: p.ExecutionID,
		CorrelationID: p.CorrelationID, Attribute: p.Attribute, From: p.From, To: p.To, PerExchange: p.PerExchange,
	})
	if err != nil {
		return nil, err
	}
	q := GroupQuery{By: by[0], Filter: list.Filter, Limit: list.Limit, Actor: identityOf(ctx).Actor}
	m, err := decodeMark(listGroups+string(q.By), p.Cursor)
	if err != nil {
		return nil, err
	}
	if m != nil {
		q.After = &alerts.GroupMark{Rank: m.Number, NewestAt: m.At, Key: m.Name}
	}
	asOf, err := s.Reading.AsOf(ctx)
	if err != nil {
		return nil, fmt.Errorf("group alerts: %w", err)
	}
	found, err := s.Folder.Groups(ctx, tenantOf(ctx), q)
	if err != nil {
		return nil, fmt.Errorf("group alerts: %w", err)
	}
	answer := GroupAlerts200JSONResponse{Items: make([]AlertGroup, len(found)), AsOf: asOf.UTC()}
	newest := make([]Alert, len(found))
	for i := range found {
		newest[i] = listedAlert(&found[i].Newest)
	}
	if err := s.annotate(ctx, newest); err != nil {
		return nil, err
	}
	for i := range found {
		answer.Items[i] = groupAnswer(q.By, &found[i])
		answer.Items[i].Newest = newest[i]
	}
	if deref(p.Deliveries) {
		if err := s.addDeliveries(ctx, q, found, answer.Items); err != nil {
			return nil, err
		}
	}
	answer.NextCursor, err = nextCursor(len(found), q.Limit, func() mark {
		last := &found[len(found)-1]
		return mark{List: listGroups + string(q.By), Name: last.Key, At: last.Newest.FiredAt.UTC(), ID: last.Newest.ID, Number: last.Rank}
	})
	return answer, err
}

// addDeliveries adds to the answers of some groups the counts of their deliveries.
func (s *server) addDeliveries(ctx context.Context, q GroupQuery, found []alerts.Group, answers []AlertGroup) error {
	counts, err := s.Folder.Deliveries(ctx, tenantOf(ctx), q, found)
	if err != nil {
		return fmt.Errorf("group alerts: %w", err)
	}
	for i := range found {
		if d, there := counts[found[i].Key]; there {
			answers[i].Delivery, answers[i].DeliveryAlerts = deliveryAnswer(d.DeliveryCounts), &d.Alerts
		}
	}
	return nil
}

func groupAnswer(by alerts.Fold, g *alerts.Group) AlertGroup {
	c := g.Counts
	answer := AlertGroup{
		Count:   c.Pending + c.Firing + c.Acknowledged + c.Resolved,
		Pending: c.Pending, Firing: c.Firing, Acknowledged: c.Acknowledged, Resolved: c.Resolved, Unread: g.Unread,
		FirstAt: g.FirstAt.UTC(),
	}
	switch by {
	case alerts.ByRule:
		answer.RuleID, answer.RuleName = &g.Newest.RuleID, &g.Newest.RuleName
	case alerts.BySignature:
		answer.Signature = &g.Key
	case alerts.ByIssue:
		i := g.Issue
		answer.Signature, answer.Application, answer.Route = &i.Signature, &i.Application, &i.Route
		answer.Severity = &i.Severity
		answer.AcknowledgedBy, answer.AcknowledgedAt = listOrNil(i.AcknowledgedBy), utc(i.AcknowledgedAt)
		trend := i.Trend[:]
		answer.Trend = &trend
	}
	return answer
}

func listOrNil(list []string) *[]string {
	if len(list) == 0 {
		return nil
	}
	return &list
}

// annotate adds to alerts what concerns the caller, and the counts of their deliveries.
func (s *server) annotate(ctx context.Context, list []Alert) error {
	if len(list) == 0 {
		return nil
	}
	ids := make([]uuid.UUID, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	who, err := s.readerOf(ctx)
	if err != nil {
		return err
	}
	notes, err := s.Reading.Annotate(ctx, tenantOf(ctx), who, ids)
	if err != nil {
		return fmt.Errorf("annotate alerts: %w", err)
	}
	for i := range list {
		note, there := notes[list[i].ID]
		if !there {
			continue
		}
		list[i].Unread, list[i].Mine = &note.Unread, &note.Mine
		list[i].Delivery = deliveryAnswer(note.Delivery)
		if r := note.Reopenable; r != nil {
			list[i].Reopenable = &Reopening{ActionID: r.ActionID, Until: r.Until.UTC(), Alerts: r.Alerts}
		}
	}
	return nil
}

func deliveryAnswer(d DeliveryCounts) *DeliverySummary {
	return &DeliverySummary{
		Total: d.Total, Delivered: d.Delivered, Retrying: d.Retrying, Failed: d.Failed, Suppressed: d.Suppressed, Discarded: d.Discarded, NextAttemptAt: utc(d.NextAttemptAt),
		QuietUntil: utc(d.QuietUntil),
	}
}
