package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
)

// handling is who handles an alert and until when it is snoozed. Nil means nobody, and not snoozed.
type handling struct {
	assignee, assignedBy *string
	assignedAt           *time.Time
	snoozedUntil         *time.Time
	snoozedBy            *string
	snoozedAt            *time.Time
}

func (h handling) on(a *alerts.Instance) {
	if h.assignee != nil && h.assignedBy != nil {
		a.Assignee, a.AssignedBy, a.AssignedAt = *h.assignee, *h.assignedBy, h.assignedAt
	}
	if h.snoozedBy != nil && a.State.Snoozable() == nil {
		a.SnoozedUntil, a.SnoozedBy, a.SnoozedAt = h.snoozedUntil, *h.snoozedBy, h.snoozedAt
	}
}

// Assign passes an alert to somebody. If two requests come at once, the second one sees what the
// first did.
func (s *Inbox) Assign(ctx context.Context, tenant string, of api.Assignment) (alerts.Instance, error) {
	var alert alerts.Instance
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		state, err := q.AlertLock(ctx, pgq.AlertLockParams{TenantID: tenant, AlertID: of.AlertID})
		if err != nil {
			return notFound(err, "alert")
		}
		to, err := assigneeOf(ctx, q, tenant, of)
		if err != nil {
			return err
		}
		from, err := q.AssigneeOf(ctx, of.AlertID)
		if err != nil {
			return err
		}
		passes, err := alerts.State(state).Reassign(from, of.Was, to)
		if err != nil {
			return err
		}
		if passes {
			if err := assign(ctx, q, tenant, of, to); err != nil {
				return err
			}
		}
		alert, err = getAlert(ctx, q, tenant, of.AlertID)
		return err
	})
	if err != nil {
		return alerts.Instance{}, fmt.Errorf("assign alert: %w", err)
	}
	return alert, nil
}

// assigneeOf returns the name of the assignee, in the form that alerts store.
func assigneeOf(ctx context.Context, q *pgq.Queries, tenant string, of api.Assignment) (string, error) {
	if of.Assignee == "" || of.Assignee == of.Actor {
		return of.Assignee, nil
	}
	name, err := q.AssigneeGet(ctx, pgq.AssigneeGetParams{TenantID: tenant, Email: of.Assignee})
	if errors.Is(err, pgx.ErrNoRows) {
		return "", fault.InvalidFields("the assignment", []fault.Field{
			{Field: "assignee", Code: "unknown", Message: "Must be the e-mail address of a user who may act on alerts"},
		})
	}
	return name, err
}

// assign writes who handles an alert that the transaction has locked.
func assign(ctx context.Context, q *pgq.Queries, tenant string, of api.Assignment, to string) error {
	var err error
	if to == "" {
		err = q.AssignmentEnd(ctx, of.AlertID)
	} else {
		err = q.AssignmentSet(ctx, pgq.AssignmentSetParams{AlertID: of.AlertID, TenantID: tenant, Assignee: to, AssignedBy: of.Actor})
	}
	if err != nil {
		return err
	}
	return q.AlertTouch(ctx, of.AlertID)
}

// Assignees returns the users who may act on alerts, by their names.
func (s *Inbox) Assignees(ctx context.Context, tenant string, most int) ([]string, error) {
	names, err := s.db.queries.AssigneeList(ctx, pgq.AssigneeListParams{TenantID: tenant, Most: int32(most)})
	if err != nil {
		return nil, fmt.Errorf("list assignees: %w", err)
	}
	return names, nil
}
