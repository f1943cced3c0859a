// Package evaluator judges exchanges by rules and raises alerts, each once.
//
// A tick claims due rules in Postgres, reads ClickHouse outside any transaction,
// judges in this process, and commits. Postgres is authoritative: what a commit
// did not write did not happen, and the next tick does the same work again.
//
//	claim ──▶ clock ──▶ fingerprints ──▶ ┌ scan page ──▶ judge ──▶ commit ┐ ──▶ release
//	                                     └─ changed seconds, then forward ┘
//
// The changed seconds have a part of the tick. What it does not suffice for is
// owed, and the tick goes forward nevertheless (see owing.go).
//
// What changed shortly before the cursor and what is new are one scan and one
// commit where a page holds both (see pages.go): how long that takes is how long
// an alert is behind the tick that finds it.
//
// What holds, and why:
//
//   - No exchange twice: an alert is unique by (rule, execution id) in the
//     database, so judging the same exchange again changes nothing.
//
//   - No exchange skipped: a cursor moves only together with the alerts of what
//     it moves over, in one transaction, by compare-and-set from the position
//     that was read and under the token of the claim. Pages are cut at a
//     position, never at a time, so equal start times cannot fall between two.
//
//   - A stale claimant changes nothing: its token or its cursor no longer
//     matches. Neither does a tick that judged by a rule's former version.
//
//   - No cursor follows a clock of the source that is ahead of the store's: the rules
//     fail instead, and go on when it is right (see clocks.go).
//
//   - When a scan is drained, the cursor moves to the horizon although nothing
//     matched, so that what a tick reads depends on what is new. What begins
//     after the horizon was read, and is seen by the scan, is raised, but no
//     cursor passes it (see ahead.go).
//
//   - What becomes visible behind the cursor is found by the look-back (see
//     lookback.go) for as long as the rule says. A cursor from which it is counted
//     moves only when that is judged, or in a commit that says with it from which
//     start time on anything is left. Whoever claims the rule next looks back to
//     the earlier of both, so that no kill makes anybody look back less far.
//
// Rules of one tenant whose cursors are near each other share their scans:
// ClickHouse narrows by the statuses and the applications that any of them can
// match, and each rule judges the rows after its own cursor. Fingerprints are
// not narrowed: they are shared by all rules of the tenant.
//
// Rules of one kind that are drained share a cursor and a claim: a cohort (see
// cohort.go). A tick writes one row for it, however many rules it has.
//
// A tick asks Postgres only when there may be something to claim (see rest.go):
// what was not announced is found within [Options].Rest.
//
// What cannot be done for one rule (a filter that does not compile, a cursor
// that cannot be read, a commit that the database refuses) is recorded on that
// rule, whose cursor stays; the other rules go on without it.
package evaluator

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/notify"
	"tocsin/rules"
)

// Source is where exchanges are read.
type Source interface {
	// Now returns the source's clock, in nanoseconds since the Unix epoch.
	Now(ctx context.Context) (int64, error)
	// Scan returns the exchanges of a range in the order of their positions, at
	// most scan.Limit. Fewer mean that the range holds no more. It may answer
	// [ErrTooMuch], but not to a scan for one exchange.
	Scan(ctx context.Context, scan Scan) ([]rules.Exchange, error)
	// Fingerprints returns the fingerprints of the buckets of a range that hold
	// anything, in no particular order.
	Fingerprints(ctx context.Context, q FingerprintQuery) ([]Fingerprint, error)
	// Rows returns how many rows of a tenant begin at or after one instant and
	// before another, of exchanges that run yet, too, and as often as they are there.
	Rows(ctx context.Context, tenantID string, fromNS, toNS int64) (uint64, error)
	Counter
}

// ErrTooMuch says that exchanges are too large to hold as many at once as a scan asks
// for. Fewer of them may do.
var ErrTooMuch = errors.New("too much at once")

// Scan is a range of one tenant's terminal exchanges.
type Scan struct {
	TenantID string
	// After is the position strictly after which the range begins.
	After cursor.Position
	// BeforeNS is the start time before which the range ends, exclusive, in
	// nanoseconds since the Unix epoch.
	BeforeNS int64
	// Statuses narrows to what any of the judging rules can match; never empty.
	Statuses []rules.Status
	// Applications narrows to the exchanges of the applications of these very
	// names; none narrows nothing.
	Applications []string
	// CompletedLeastNS leaves out what completed within less time, in nanoseconds; 0
	// leaves out nothing.
	CompletedLeastNS int64
	// EndedSinceNS allows to leave out what ended before that instant, in nanoseconds
	// since the Unix epoch; 0 leaves out nothing.
	EndedSinceNS int64
	// Limit is the most exchanges to return, at least 1.
	Limit int
	// Narrow leaves out what does not match, where it is not nil.
	Narrow *Narrowing
}

// Store keeps rules, cursors and alerts.
type Store interface {
	// Load claims due rules.
	Load(ctx context.Context, request ClaimRequest) (Loaded, error)
	// Commit writes a batch in one transaction. Claims that no longer stand are
	// left out, all else is written or, with an error, nothing at all.
	Commit(ctx context.Context, batch Batch) (Committed, error)
	// Fail records a problem on claimed rules and releases them, due as before.
	// It returns those whose claim still stood; nothing is written for others.
	Fail(ctx context.Context, claims []Claim, problem string) ([]uuid.UUID, error)
	// Announce raises alerts about rules that cannot be evaluated and tells the
	// operators, once for each rule until it is committed again, edited or retried.
	// It returns the number of notifications written.
	Announce(ctx context.Context, failing []alerts.Instance) (notifications int, err error)
	// Clock returns the present by the clock of the claims.
	Clock(ctx context.Context) (time.Time, error)
}

// Publisher tells dispatchers that notifications are waiting. What it loses,
// their polling finds.
type Publisher interface {
	Publish(ctx context.Context, w notify.WakeUp) error
}

// Observer is told what ticks did. Its method must not block.
type Observer interface {
	Ticked(result Result)
}

// Texts renders an alert's title and message. It always returns texts to show;
// where a template does not work out it falls back and says why in problem.
type Texts interface {
	Texts(rule *rules.Rule, e *rules.Exchange) (title, message string, problem error)
	// CountTexts is for counts. Newest is the zero exchange where none is known.
	CountTexts(rule *rules.Rule, c *alerts.Count, newest *rules.Exchange) (title, message string, problem error)
}

// ClaimRequest says which claims a replica wants.
type ClaimRequest struct {
	Replica string
	// Most is the largest number of rules to claim.
	Most int
	// For is how long a claim stands without a commit.
	For time.Duration
	// Grace is how late a cohort is that another replica evaluated last, before it
	// is claimed.
	Grace time.Duration
	// Rest bounds what is said of how long there is nothing to claim.
	Rest time.Duration
}

// Loaded is what a replica claimed, and when it should ask again.
type Loaded struct {
	Claims []Claim
	// Idle is how long this replica can claim nothing, counted by the store's clock
	// from the claim on; at most the request's Rest, and 0 where something was claimed
	// or may become free at any moment. What is written later is not known to it.
	Idle time.Duration
}

// Claim is a rule, or a cohort of rules, that this replica may evaluate.
type Claim struct {
	Rule rules.Rule
	// Cohort is nil where the claim is on a rule; else there is no rule.
	Cohort *CohortClaim
	// Token fences the claim.
	Token int64
	// From is the cursor, nil before a rule's first run.
	From *cursor.Position
	// OwedFromNS is the start time from which on a look-back is owed beside the one
	// that is counted from the cursor; nil is none.
	OwedFromNS *int64
	// Open holds the open alerts of a COUNT_IN_WINDOW rule.
	Open []OpenAlert
	// Now is the instant of the claim, by the clock of the instants in Open; zero where
	// the store tells none, and then no clock is compared with it.
	Now time.Time
	// Err tells why the rule cannot be evaluated as it is stored; nil when it can.
	Err error
}

// OpenAlert is the open alert of a COUNT_IN_WINDOW rule and group.
type OpenAlert struct {
	ID    uuid.UUID
	Group string
	alerts.Open
}

// Start returns the position after which the rule judges.
func (c *Claim) Start() cursor.Position {
	if c.From != nil {
		return *c.From
	}
	if len(c.Rule.Former) > 0 {
		return cursor.Position{StartTimeNS: c.Rule.Former[0].FromNS}
	}
	return cursor.Position{StartTimeNS: c.Rule.ArmedSinceNS}
}

// Advance moves the cursor of one claimed rule.
type Advance struct {
	RuleID  uuid.UUID
	Token   int64
	Version int64
	// From is the cursor that the claim was judged from, nil for a first run.
	From *cursor.Position
	To   cursor.Position
	// OwedFromNS is what is owed from then on, as in [Claim].
	OwedFromNS *int64
	// Release ends the claim and makes the rule due after its interval or, with
	// AtOnce, right away.
	Release, AtOnce bool
	// Problem is recorded on the rule, in place of what was; empty is none.
	Problem string
	// Unjudged says that the claim is only given back: whether the rule can be
	// evaluated is not known, and stays recorded as it was.
	Unjudged bool
}

// Batch is what one transaction writes.
type Batch struct {
	// ClaimFor is how long the claims stand that are not released.
	ClaimFor time.Duration
	// LeastDueAt is when rules of the least interval that are released become due
	// again, by the clock of the claims; zero is after their interval.
	LeastDueAt time.Time
	// Patience is how long the commit may wait for room at a dispatcher.
	Patience time.Duration
	Advances []Advance
	Cohorts  []CohortAdvance
	// Instances are new or known; of the known ones nothing is written.
	Instances []alerts.Instance
	// Notifications are written for those instances that are new.
	Notifications []notify.Notification
	// Changes are made to the alerts of COUNT_IN_WINDOW rules.
	Changes []Change
}

// Change is a step of one alert of a COUNT_IN_WINDOW rule. It is made if the
// alert still stands where the step leads from; else nothing of it is written.
type Change struct {
	Step alerts.Step
	// Instance is whole for a new alert; for an open one it holds the id, the
	// rule, and what changes: texts, count and newest exchange.
	Instance alerts.Instance
	// Notifications are what the step owes.
	Notifications []notify.Notification
}

// IDs is a set of ids.
type IDs map[uuid.UUID]bool

// NewIDs returns the set of some ids.
func NewIDs(list []uuid.UUID) IDs {
	set := make(IDs, len(list))
	for _, id := range list {
		set[id] = true
	}
	return set
}

// Committed is what a transaction wrote.
type Committed struct {
	// Advanced holds the rules whose cursor moved; the others were stale.
	Advanced []uuid.UUID
	// Cohorts holds the cohorts whose cursor moved. Strayed is how many rules had
	// found something with one of these, and were no longer members.
	Cohorts []uuid.UUID
	Strayed int
	// Inserted holds the alerts that are new, Changed those that took a step.
	Inserted, Changed []uuid.UUID
	// Notifications is the number of notifications written, HandedOver how many of
	// them a dispatcher has already, so that nobody is to be told of them.
	Notifications, HandedOver int
	// Waiting counts the others by webhook, as far as it is known whose they are.
	Waiting map[uuid.UUID]int
}
