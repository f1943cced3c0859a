package api

import (
	"context"
	"fmt"
)

// maxAssignees bounds the list of possible assignees.
const maxAssignees = 1000

// AssignAlert answers POST /alerts/{id}/assign.
func (s *server) AssignAlert(ctx context.Context, req AssignAlertRequestObject) (AssignAlertResponseObject, error) {
	who, b := identityOf(ctx), req.Body
	if err := checkAssignee(who, b.Assignee); err != nil {
		return nil, err
	}
	if err := texts("was", []string{b.Was}, maxNameBytes); err != nil {
		return nil, err
	}
	a, err := s.Handling.Assign(ctx, who.Tenant, Assignment{AlertID: req.ID, Was: b.Was, Assignee: b.Assignee, Actor: who.Actor})
	if err != nil {
		return nil, fmt.Errorf("assign alert: %w", err)
	}
	s.hub.nudge(who.Tenant)
	return AssignAlert200JSONResponse(alertAnswer(&a)), nil
}

// checkAssignee returns what is wrong with an assignee, as far as that does not depend on the
// existing users.
func checkAssignee(who Identity, assignee string) error {
	if err := texts("assignee", []string{assignee}, maxNameBytes); err != nil {
		return err
	}
	if assignee == who.Actor && who.Kind == kindToken {
		return invalidField("assignee", "not_applicable", "A token cannot handle alerts; name a user")
	}
	return nil
}

// ListAssignees answers GET /alerts/assignees.
func (s *server) ListAssignees(ctx context.Context, _ ListAssigneesRequestObject) (ListAssigneesResponseObject, error) {
	names, err := s.Handling.Assignees(ctx, tenantOf(ctx), maxAssignees)
	if err != nil {
		return nil, fmt.Errorf("list assignees: %w", err)
	}
	return ListAssignees200JSONResponse{Items: names}, nil
}

// SnoozeAlert answers POST /alerts/{id}/snooze.
func (s *server) SnoozeAlert(ctx context.Context, req SnoozeAlertRequestObject) (SnoozeAlertResponseObject, error) {
	if req.Body.Until.IsZero() {
		return nil, invalidField("until", "required", "Must be a timestamp")
	}
	a, err := s.snooze(ctx, Snooze{AlertID: req.ID, Until: &req.Body.Until})
	return SnoozeAlert200JSONResponse(a), err
}

// UnsnoozeAlert answers POST /alerts/{id}/unsnooze.
func (s *server) UnsnoozeAlert(ctx context.Context, req UnsnoozeAlertRequestObject) (UnsnoozeAlertResponseObject, error) {
	a, err := s.snooze(ctx, Snooze{AlertID: req.ID})
	return UnsnoozeAlert200JSONResponse(a), err
}

func (s *server) snooze(ctx context.Context, z Snooze) (Alert, error) {
	who := identityOf(ctx)
	z.Actor = who.Actor
	a, err := s.Handling.Snooze(ctx, who.Tenant, z)
	if err != nil {
		return Alert{}, fmt.Errorf("snooze alert: %w", err)
	}
	s.hub.nudge(who.Tenant)
	return alertAnswer(&a), nil
}
