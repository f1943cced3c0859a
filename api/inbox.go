package api

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/rules"
)

// Inbox keeps what rules raised.
type Inbox interface {
	// List returns a page of alerts; stack and attributes of their exchanges may
	// be missing.
	List(ctx context.Context, tenant string, q alerts.Query) (alerts.Page, error)
	Counts(ctx context.Context, tenant string) (alerts.Counts, error)
	Get(ctx context.Context, tenant string, id uuid.UUID) (alerts.Instance, error)
	// Act does what [alerts.State.After] allows and returns the whole alert after the action. An
	// alert that already has the state keeps the name of the person who was first.
	Act(ctx context.Context, tenant string, deed Deed) (alerts.Instance, error)
}

// Deed is something that a person does about an alert.
type Deed struct {
	AlertID uuid.UUID
	Action  alerts.Action
	// Actor is who does it, as alerts show it.
	Actor string
}

// Handling keeps who handles which alert.
type Handling interface {
	// Assign does what [alerts.State.Reassign] allows and returns the whole alert after the change.
	// An assignee who is neither the actor nor a user who may act is invalid.
	Assign(ctx context.Context, tenant string, a Assignment) (alerts.Instance, error)
	// Snooze keeps an alert quiet until an instant. A snooze that [alerts.State.Snoozable] does not
	// allow is a conflict. An instant that is over, or too far ahead, is invalid. Nil cancels a
	// snooze.
	Snooze(ctx context.Context, tenant string, z Snooze) (alerts.Instance, error)
	// Assignees returns the names of users who may act, at most so many.
	Assignees(ctx context.Context, tenant string, most int) ([]string, error)
}

// Assignment passes an alert from one person to another one; empty is nobody.
type Assignment struct {
	AlertID uuid.UUID
	// Was is the assignee as the actor saw it.
	Was, Assignee string
	Actor         string
}

// Snooze is until when somebody wants an alert to be quiet; nil is no more.
type Snooze struct {
	AlertID uuid.UUID
	Until   *time.Time
	Actor   string
}

// Bulk acts on many alerts at once.
type Bulk interface {
	// ActOnMany does a deed on every alert of its filter, or on none. A deed whose
	// id is known was done already: the answer is the same, and nothing is done again.
	ActOnMany(ctx context.Context, tenant string, deed BulkDeed) (BulkCounts, error)
	// AssignMany assigns the alerts of a filter as ActOnMany acts on them.
	AssignMany(ctx context.Context, tenant string, of BulkAssignment) (BulkCounts, error)
	// Undo reverts the changes of an action that have not been changed again since. An action that
	// can no longer be undone, or that another actor did, is a fault of kind Conflict. Repeating an
	// undo changes nothing and returns the same.
	Undo(ctx context.Context, tenant string, u Undo) (UndoCounts, error)
}

// BulkDeed is what somebody does about many alerts.
type BulkDeed struct {
	// ID names the deed.
	ID     uuid.UUID
	Action alerts.Action
	Actor  string
	// Filter selects the alerts.
	Filter alerts.Filter
	// HoldUntil is until when nothing is raised for the groups of window alerts that it
	// resolves; nil is until their values have been back once.
	HoldUntil *time.Time
}

// BulkAssignment assigns many alerts to somebody; empty is nobody.
type BulkAssignment struct {
	// ID names the action.
	ID    uuid.UUID
	Actor string
	// Filter selects the alerts. Alerts that somebody other than the actor handles are not touched,
	// unless Reassign is set.
	Filter   alerts.Filter
	Assignee string
	Reassign bool
}

// BulkCounts is what became of the alerts that a deed was about.
type BulkCounts struct {
	// Changed were changed, Already were where the action leads, Refused are in a
	// state that does not allow it or handled by others, Unknown are ids without an alert.
	Changed, Already, Refused, Unknown int64
	// UndoableUntil is by Postgres's clock.
	UndoableUntil time.Time
}

// Undo names an action and who wants it undone.
type Undo struct {
	ActionID uuid.UUID
	Actor    string
}

// UndoCounts is what became of the alerts that an action had changed.
type UndoCounts struct{ Restored, Skipped int64 }

// Reading knows who has read what, and what lists show beside alerts.
type Reading interface {
	// AsOf returns an instant by which whatever fired is in lists that are read
	// after the call, by Postgres's clock.
	AsOf(ctx context.Context) (time.Time, error)
	// Annotate returns what is shown beside alerts. One that is gone is missing.
	Annotate(ctx context.Context, tenant string, who Reader, ids []uuid.UUID) (map[uuid.UUID]Annotation, error)
	// MarkRead marks alerts and returns how many were not so before.
	MarkRead(ctx context.Context, tenant string, m ReadMark) (int64, error)
	// Unread counts the open alerts that somebody has not read.
	Unread(ctx context.Context, tenant, actor string) (int64, error)
}

// Reader is who looks at the inbox, and the targets that stand for them.
type Reader struct {
	Actor   string
	Targets []rules.Target
}

// Annotation is what is shown beside an alert.
type Annotation struct {
	Unread, Mine bool
	Delivery     DeliveryCounts
}

// DeliveryCounts is what became of an alert's notifications.
type DeliveryCounts struct {
	Total, Delivered, Retrying, Failed, Suppressed int
	// NextAttemptAt is nil when no message waits; QuietUntil where quiet hours hold none.
	NextAttemptAt, QuietUntil *time.Time
}

// ReadMark is what somebody marks as read, or as unread.
type ReadMark struct {
	Actor  string
	Read   bool
	Filter alerts.Filter
	// Everything says that Filter restricts nothing but the time, and not by state.
	Everything bool
}

// Folder folds alerts into groups.
type Folder interface {
	// Groups returns groups in the order of [alerts.GroupMark].
	Groups(ctx context.Context, tenant string, q GroupQuery) ([]alerts.Group, error)
}

// GroupQuery selects groups of alerts.
type GroupQuery struct {
	By     alerts.Fold
	Filter alerts.Filter
	// Actor is the person whose unread alerts are counted.
	Actor string
	// After continues a listing after its last group; nil begins it.
	After *alerts.GroupMark
	// Limit is the number of groups wanted, 1 to 200.
	Limit int
}
