package api

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/rules"
)

// Inbox stores alerts.
type Inbox interface {
	// List returns a page of alerts; stack and attributes of their exchanges may
	// be missing.
	List(ctx context.Context, tenant string, q alerts.Query) (alerts.Page, error)
	Counts(ctx context.Context, tenant string) (alerts.Counts, error)
	Get(ctx context.Context, tenant string, id uuid.UUID) (alerts.Instance, error)
	// Act does what [alerts.State.After] allows and returns the whole alert after the action. An
	// alert that already has the state keeps the name of the person who was first.
	Act(ctx context.Context, tenant string, act AlertAction) (alerts.Instance, error)
}

// AlertAction is an action of a person on an alert.
type AlertAction struct {
	AlertID uuid.UUID
	Action  alerts.Action
	// Actor is the person, as alerts show them.
	Actor string
}

// Handling stores who handles which alert.
type Handling interface {
	// Assign does what [alerts.State.Reassign] allows and returns the whole alert after the change.
	// An assignee who is neither the actor nor a user who may act is invalid.
	Assign(ctx context.Context, tenant string, a Assignment) (alerts.Instance, error)
	// Snooze snoozes an alert until an instant. A snooze that [alerts.State.Snoozable] does not
	// allow is a conflict. An instant in the past, or too far in the future, is invalid. Nil
	// cancels a snooze.
	Snooze(ctx context.Context, tenant string, z Snooze) (alerts.Instance, error)
	// Assignees returns at most most names of users who may act.
	Assignees(ctx context.Context, tenant string, most int) ([]string, error)
}

// Assignment passes an alert from one person to another; empty means nobody.
type Assignment struct {
	AlertID uuid.UUID
	// Was is the assignee that the actor saw.
	Was, Assignee string
	Actor         string
}

// Snooze is until when a person snoozes an alert; nil cancels the snooze.
type Snooze struct {
	AlertID uuid.UUID
	Until   *time.Time
	Actor   string
}

// Bulk acts on many alerts at once.
type Bulk interface {
	// ActOnMany does an action on every alert of its filter, or on none. If the id of the action is
	// known, it was done before: the answer is the same, and nothing is done again.
	ActOnMany(ctx context.Context, tenant string, act BulkAction) (BulkCounts, error)
	// AssignMany assigns the alerts of a filter, with the same guarantees as ActOnMany.
	AssignMany(ctx context.Context, tenant string, of BulkAssignment) (BulkCounts, error)
	// Undo reverts the changes of an action that have not been changed again since. An action that
	// can no longer be undone, or that another actor did, is a fault of kind Conflict. Repeating an
	// undo changes nothing and returns the same.
	Undo(ctx context.Context, tenant string, u Undo) (UndoCounts, error)
}

// BulkAction is an action of a person on many alerts.
type BulkAction struct {
	// ID identifies the action.
	ID     uuid.UUID
	Action alerts.Action
	Actor  string
	// Filter selects the alerts.
	Filter alerts.Filter
	// HoldUntil is until when nothing is raised for the groups of resolved window alerts; nil means
	// until their values have been below the threshold once.
	HoldUntil *time.Time
}

// BulkAssignment assigns many alerts to somebody; empty means nobody.
type BulkAssignment struct {
	// ID identifies the action.
	ID    uuid.UUID
	Actor string
	// Filter selects the alerts. Alerts that somebody other than the actor handles are not touched,
	// unless Reassign is set.
	Filter   alerts.Filter
	Assignee string
	Reassign bool
}

// BulkCounts is the result of an action on many alerts.
type BulkCounts struct {
	// Changed is the number of alerts that were changed; Already, of those that already were in the
	// resulting state; Refused, of those whose state does not allow the action or that others
	// handle; Unknown, of ids without an alert.
	Changed, Already, Refused, Unknown int64
	// UndoableUntil is by Postgres's clock.
	UndoableUntil time.Time
}

// Undo names an action and the person who undoes it.
type Undo struct {
	ActionID uuid.UUID
	Actor    string
}

// UndoCounts is the result for the alerts that an action had changed.
type UndoCounts struct{ Restored, Skipped int64 }

// Reading stores who has read which alerts, and reads what lists show in addition to alerts.
type Reading interface {
	// AsOf returns an instant such that lists read after the call contain everything that fired
	// before it, by Postgres's clock.
	AsOf(ctx context.Context) (time.Time, error)
	// Annotate returns what is shown in addition to alerts. Deleted alerts are missing.
	Annotate(ctx context.Context, tenant string, who Reader, ids []uuid.UUID) (map[uuid.UUID]Annotation, error)
	// MarkRead marks alerts and returns how many changed.
	MarkRead(ctx context.Context, tenant string, m ReadMark) (int64, error)
	// Unread counts the open alerts that a person has not read.
	Unread(ctx context.Context, tenant, actor string) (int64, error)
}

// Reader is the person who looks at the inbox, and the targets that mean this person.
type Reader struct {
	Actor   string
	Targets []rules.Target
}

// Annotation is what is shown in addition to an alert.
type Annotation struct {
	Unread, Mine bool
	Delivery     DeliveryCounts
	// Reopenable is how the reader can reopen the alert; nil if that is not possible.
	Reopenable *Reopenable
}

// Reopenable is an acknowledgement or resolution that the reader can undo, and after which an alert
// has not changed.
type Reopenable struct {
	ActionID uuid.UUID
	Until    time.Time
	// Alerts is how many alerts the action changed; undoing it reopens all of them.
	Alerts int64
}

// DeliveryCounts counts notifications by result.
type DeliveryCounts struct {
	Total, Delivered, Retrying, Failed, Suppressed, Discarded int
	// NextAttemptAt is nil if no message waits; QuietUntil is nil if quiet hours hold none.
	NextAttemptAt, QuietUntil *time.Time
}

// ReadMark says what a person marks as read or unread.
type ReadMark struct {
	Actor  string
	Read   bool
	Filter alerts.Filter
	// Everything says that Filter restricts only the time.
	Everything bool
}

// Folder groups alerts.
type Folder interface {
	// Groups returns groups in the order of [alerts.GroupMark].
	Groups(ctx context.Context, tenant string, q GroupQuery) ([]alerts.Group, error)
	// Deliveries counts the notifications of groups by key. For each group it covers the newest
	// alerts, at most 5,000 in total; a group whose alerts were deleted is missing.
	Deliveries(ctx context.Context, tenant string, q GroupQuery, groups []alerts.Group) (map[string]GroupDeliveries, error)
}

// GroupDeliveries counts the notifications of a group's newest alerts.
type GroupDeliveries struct {
	DeliveryCounts

	// Alerts is how many alerts are covered.
	Alerts int64
}

// GroupQuery selects groups of alerts.
type GroupQuery struct {
	By     alerts.Fold
	Filter alerts.Filter
	// Actor is the person whose unread alerts are counted.
	Actor string
	// After continues a listing after its last group; nil starts a listing.
	After *alerts.GroupMark
	// Limit is the number of groups to return, 1 to 200.
	Limit int
}
