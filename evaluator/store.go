package evaluator

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/evaluator/backlog"
	"tocsin/evaluator/outage"
	"tocsin/evaluator/ruleset"
	"tocsin/evaluator/watch"
	"tocsin/evaluator/window"
	"tocsin/notify"
)

// Store keeps checkpoints, rules and alerts.
type Store interface {
	// Hold renews the leases of this replica, takes free or expired partitions up to
	// its fair share, gives up what is above it, and returns what the replica holds.
	// Partitions in request.Busy are not given up.
	Hold(ctx context.Context, request HoldRequest) (Holding, error)
	// Rules returns the rules of a partition that changed after a rules revision; after
	// 0 all enabled ones.
	Rules(ctx context.Context, partition int, after int64) (ruleset.Changed, error)
	// OpenAlerts returns the state of the alerts of window rules.
	OpenAlerts(ctx context.Context, ruleIDs []uuid.UUID) ([]alerts.OpenAlert, error)
	// Commit writes a batch in one transaction, or nothing. It returns [ErrStale] when
	// the checkpoint is no longer the one that the batch was made from, and an error
	// that wraps [ErrRefused] when the database refuses what the batch says, however
	// often it is repeated. Every other error may be transient.
	Commit(ctx context.Context, batch Batch) (Committed, error)
	// Release gives up partitions that this replica holds, and its share: it is about to end.
	Release(ctx context.Context, replica string, partitions []int) error
	outage.Store
}

var (
	// ErrStale says that a checkpoint has another revision, rules revision or token than
	// the batch was made from: nothing was written.
	ErrStale = errors.New("the checkpoint has changed")
	// ErrRefused says that the database refuses the content of a batch.
	ErrRefused = errors.New("refused by the database")
)

// HoldRequest says who wants to hold partitions.
type HoldRequest struct {
	Replica string
	// LeaseFor is how long a lease is valid without renewal.
	LeaseFor time.Duration
	// Busy are the partitions with a pass under way in this process.
	Busy []int
}

// Holding is what a replica holds.
type Holding struct {
	Checkpoints []Checkpoint
	// Locked are free partitions for which the share has room but which could not be taken: another session has locked
	// their rows, or another replica has just taken them.
	Locked []int
	// Now is the present, by the store's clock.
	Now time.Time
	// SourceFailed are the partitions, also of other replicas, for which it is announced that
	// the source cannot be read.
	SourceFailed []int
}

// Checkpoint is the stored progress of a partition: lease, fence and cursor in one row.
type Checkpoint struct {
	Partition int
	// Share of the tenants, see [source.Tenants]; Of is 0 for a partition with tenants of its own.
	Index, Of uint32
	// Token fences the lease: random, new with each change of the holder.
	Token int64
	// Revision grows by one with each commit, and by more where the partition is given other
	// rules. RulesRevision grows with each change of a rule of the partition, in the
	// transaction of that change.
	Revision, RulesRevision int64
	// Cursor is nil before the first pass, and while the partition has no enabled rule.
	Cursor *cursor.Position
	// Backfill is what lies behind the cursor and is not evaluated yet, beside the
	// look-back of the cursor itself; nil is nothing.
	Backfill *backlog.Mark
	// Watch is how the source was watched for rules on absence.
	Watch watch.State
	// ClockOffset is the source's clock minus the store's, as last measured; more by the
	// time between the two readings, which is less than a second. A new rule begins by it.
	ClockOffset time.Duration
	// Err tells why the checkpoint cannot be used as it is stored.
	Err error
}

// Batch is what one transaction writes about a partition.
type Batch struct {
	Partition int
	// Token, Revision and RulesRevision are those of the checkpoint that the batch was
	// made from: the compare-and-set that fences the transaction.
	Token, Revision, RulesRevision int64
	// LeaseFor renews the lease.
	LeaseFor time.Duration
	// Cursor, Backfill, Watch and ClockOffset replace those of the checkpoint.
	Cursor      *cursor.Position
	Backfill    *backlog.Mark
	Watch       watch.State
	ClockOffset time.Duration
	// Instances are new or known; of the known ones nothing is written.
	Instances []alerts.Instance
	// Notifications are written for those instances that are new, those that a silence in
	// force suppresses as settled.
	Notifications []notify.Notification
	// Changes are made to the alerts of window rules. The store adds the notifications of their ends: it knows which webhooks
	// were notified of an alert.
	Changes []window.Change
	// Backfills are written as they are, and deleted where they are done.
	Backfills []ruleset.Backfill
	// Replay is nil but for what a replay raises: all instances and notifications are its
	// own then. Where it is over, the commit is stale.
	Replay *ruleset.ReplayStep
	// Health is recorded on rules. That one fails is announced once, and that it does no
	// longer as well.
	Health map[uuid.UUID]ruleset.Health
	// Evaluated are window rules that were evaluated, for their last-run times. Not each
	// evaluation is noted.
	Evaluated []uuid.UUID
}

// Committed is what a transaction wrote.
type Committed struct {
	// Revision is that of the checkpoint from now on.
	Revision int64
	// Inserted holds the alerts that are new, Changed those that took a step.
	Inserted, Changed []uuid.UUID
	// Locked holds the alerts that took no step, because somebody else had locked them.
	Locked []uuid.UUID
	// Notifications counts what was written to be sent, by webhook; Suppressed counts what
	// was written that silences suppress.
	Notifications map[uuid.UUID]int
	Suppressed    int
}
