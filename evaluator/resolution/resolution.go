// Package resolution resolves the open alerts of PER_EXCHANGE rules that ask for it: by age, or by
// evidence that the work of the failed exchange was done later.
//
// Postgres is authoritative. A replica changes only alerts that are still open, in the transaction
// that writes their messages. So if two replicas find the same, or a person acts meanwhile, an
// alert is resolved once; and a process that dies has resolved an alert with its messages or not at
// all. A rule is taken by one replica at a time, which only saves work. The present version of a
// rule decides about all its open alerts. An edit counts from the next pass on, and an edit that
// comes first voids what was found.
//
// Age is counted from when the alert was raised, by Postgres's clock, and needs nothing else.
//
// Evidence is another exchange of the same environment, application and route that completed, has
// the same correlation id or attribute, and began after the failed one had ended. An exchange that
// ran at the same time does not show that the cause is gone, and a later step of the same work does
// not show anything about this one. Both instants are the source's. If the source has no end, the
// start counts. The compared values must be complete: an alert whose correlation id, attribute or
// route is empty, was not stored, was cut or contains invalid bytes is not resolved by evidence.
//
// A time range that was searched is not searched again, except for its last part: the next pass
// finds evidence that becomes visible within the rule's look-back after it began (at least fifteen
// minutes, at most an hour). These are not found: evidence that becomes visible later, evidence
// that begins more than a day before it is searched for, and evidence for alerts that are not among
// the newest 20,000 open ones of their rule. Age or a person resolves those alerts.
//
// A server that lags delays evidence, and so does an outage of ClickHouse: the mark does not move,
// and nothing is resolved by what cannot be read. If a search fails, for example because it takes
// too long, less time is read at once. After some failures in a row the alerts wait, for at most
// ten minutes. One query searches for the evidence of up to 500 alerts, for all rules of a tenant
// that compare the same. If an exchange is found completed and later turns out to have failed, the
// alert stays resolved, and the exchange raises its own alert like any other.
package resolution

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/rules"
)

// Rule is a rule that was taken.
type Rule struct {
	ID         uuid.UUID
	TenantID   string
	Resolution rules.Resolution
	LookBack   time.Duration
	// TakenAt is when it was taken, by Postgres's clock.
	TakenAt time.Time
	// Searched is how far this evidence was searched for; nil before the first time.
	Searched *Searched
}

// Searched says that evidence was searched for among exchanges that began before ToNS, by the
// source's clock, for alerts raised before At.
type Searched struct {
	ToNS int64
	At   time.Time
}

// Key is what a failed exchange and its evidence have in common. Value is the correlation id or the
// attribute.
type Key struct{ Environment, Application, Route, Value string }

// Open is an alert that is open.
type Open struct {
	ID      uuid.UUID
	FiredAt time.Time
	// EndedNS is when its exchange ended. If the source has no end, it is when the exchange began,
	// or an earlier instant. ExecutionID is the key of the exchange.
	EndedNS     int64
	ExecutionID string
	Key         Key
}

// Query asks for completed exchanges.
type Query struct {
	TenantID string
	// Attribute is the key of the compared attribute; empty means that correlation ids are
	// compared.
	Attribute string
	// Values are the values to search for. Routes are the routes of the failed exchanges; none
	// means all.
	Values, Routes []string
	// FromNS is inclusive, ToNS exclusive; both are start times.
	FromNS, ToNS int64
}

// Completed is the exchange with a key that began last.
type Completed struct {
	Key Key
	cursor.Position
}

// Source finds evidence.
type Source interface {
	// Now returns the source's clock, in nanoseconds since the Unix epoch.
	Now(ctx context.Context) (int64, error)
	// LastCompleted returns, for each key with one of the values, the completed exchange that began
	// last.
	LastCompleted(ctx context.Context, q Query) ([]Completed, error)
}

// Proof is the evidence that resolves an alert.
type Proof struct {
	AlertID  uuid.UUID
	Evidence alerts.Resolution
}

// Store stores rules and alerts.
type Store interface {
	// Take takes the rule that was taken the longest ago, if that is at least every ago; nil if
	// there is none.
	Take(ctx context.Context, every time.Duration) (*Rule, error)
	// ResolveAged resolves at most most alerts that are too old, and returns how many.
	ResolveAged(ctx context.Context, r *Rule, most int) (int, error)
	// Open returns open alerts of a rule, newest first, that come after one of them.
	Open(ctx context.Context, r *Rule, after *Open, most int) ([]Open, error)
	// ResolveProven resolves those of the proven alerts that are still open, and returns how many.
	ResolveProven(ctx context.Context, r *Rule, proofs []Proof) (int, error)
	// MarkSearched stores how far evidence was searched for.
	MarkSearched(ctx context.Context, r *Rule, s Searched) error
}

// Resolver resolves alerts. All fields are required. It is not safe for concurrent use.
type Resolver struct {
	Store  Store
	Source Source
	Logger *slog.Logger
	// Interval is the time from one pass to the next.
	Interval time.Duration

	// sliceNS is how much time is read at once, adapted to recent reads; 0 at first.
	sliceNS int64
	// waits holds how long no evidence is searched for after failures.
	waits map[place]wait
}

type wait struct {
	until  time.Time
	length time.Duration
}

const (
	// pageSize is how many alerts are compared or resolved at once; most is how many of one rule.
	pageSize, most = 500, 20_000
	// takenMost is how many rules are taken at once.
	takenMost = 50
	// ruleTimeout bounds the time for one rule, or for rules that are searched together.
	ruleTimeout = 2 * time.Minute
	// longestWait is the longest time without a search after a failure.
	longestWait = 10 * time.Minute
	// longestSliceNS and shortestSliceNS bound how much time is read at once; failuresMost is how
	// many reads in a row may fail.
	longestSliceNS, shortestSliceNS = int64(4 * time.Hour), int64(time.Minute)
	failuresMost                    = 4
	// leastBehind is the least time before its mark that a pass searches again. It is longer than
	// the time within which a person can undo that an alert was resolved.
	leastBehind = 15 * time.Minute
	// commitWithin bounds the time until a raised alert is visible.
	commitWithin = 2 * time.Minute
	// mostBehind is the longest time before its mark that a pass searches again; longest is how far
	// back evidence is searched for.
	mostBehind, longest = time.Hour, 24 * time.Hour
	// valueBytes bounds the length of compared values.
	valueBytes = 256
)

// Result is what a pass did.
type Result struct{ Rules, Aged, Proven, Failed int }

// Run makes passes until ctx ends. The interval between them does not depend on how long they take.
func (r *Resolver) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(r.Interval):
		}
		result, err := r.Tick(ctx)
		if err != nil && ctx.Err() == nil {
			r.Logger.WarnContext(ctx, "alerts not resolved by age or evidence; it is retried: run tocsin doctor if this repeats", slog.Any("error", err))
		}
		if result.Aged+result.Proven > 0 {
			r.Logger.InfoContext(ctx, "alerts resolved", slog.Int("by_age", result.Aged), slog.Int("by_evidence", result.Proven))
		}
	}
}

// Tick is one pass over the rules that are due. A rule that fails does not hold up the others: its
// error is logged, and it is due again at the next pass.
func (r *Resolver) Tick(ctx context.Context) (Result, error) {
	var result Result
	began := time.Now() //nolint:forbidigo // a duration alone
	for {
		taken, err := r.take(ctx, began)
		result.Rules += len(taken)
		if err != nil {
			return result, err
		}
		if len(taken) == 0 {
			return result, nil
		}
		failed := map[uuid.UUID]bool{}
		for _, rule := range taken {
			r.note(ctx, failed, []*Rule{rule}, r.resolveAged(ctx, rule, &result))
		}
		for _, alike := range byEvidence(taken) {
			r.note(ctx, failed, alike, r.search(ctx, alike, &result))
		}
		result.Failed += len(failed)
		if ctx.Err() != nil {
			return result, fmt.Errorf("resolve alerts: %w", ctx.Err())
		}
	}
}

// take takes at most takenMost rules. A rule is due if nobody has taken it for half of the interval
// before the pass began: so a replica that is a little early finds its own rules due, and takes
// none twice.
func (r *Resolver) take(ctx context.Context, began time.Time) (taken []*Rule, err error) {
	for len(taken) < takenMost {
		rule, err := r.Store.Take(ctx, r.Interval/2+time.Since(began))
		if err != nil || rule == nil {
			return taken, err
		}
		taken = append(taken, rule)
	}
	return taken, nil
}

// note notes that rules have failed, and logs the error.
func (r *Resolver) note(ctx context.Context, failed map[uuid.UUID]bool, about []*Rule, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	for _, rule := range about {
		failed[rule.ID] = true
	}
	r.Logger.WarnContext(ctx, "alerts of a rule not resolved by age or evidence; it is retried: run tocsin doctor if this repeats",
		slog.String("rule_id", about[0].ID.String()), slog.Int("rules", len(about)), slog.Any("error", err))
}

func (r *Resolver) resolveAged(ctx context.Context, rule *Rule, result *Result) error {
	ctx, cancel := context.WithTimeout(ctx, ruleTimeout)
	defer cancel()
	for rule.Resolution.AfterSeconds > 0 {
		n, err := r.Store.ResolveAged(ctx, rule, pageSize)
		result.Aged += n
		if err != nil || n < pageSize {
			return err
		}
	}
	return nil
}
