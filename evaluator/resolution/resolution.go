// Package resolution resolves the open alerts of those PER_EXCHANGE rules that say by what:
// by age, or by evidence that the work of the failed exchange was done later.
//
// Postgres is authoritative. Whoever resolves alerts changes only those that are open, in the
// transaction that writes their messages: two replicas that find the same, or a person who
// acts meanwhile, resolve an alert once, and a process that dies has resolved it with its
// messages or not at all. A rule is taken on by one replica at a time, which only saves work.
// A rule as it is now decides about all its open alerts; an edit counts from the next pass on,
// and one that comes first voids what was found.
//
// Age is counted from when the alert was raised, by Postgres's clock, and needs nothing else.
//
// Evidence is another exchange of the same environment, application and route that completed,
// has the same correlation id or attribute, and began after the failed one had ended: one that
// ran beside it says nothing about whether the cause is gone, and a later step of the same
// work none about this one. Both instants are the source's.
// Where the source does not tell an end, the start stands for it. What is compared has to be
// there in full: an alert whose correlation id, attribute or route is empty, was not kept, was cut or
// holds odd bytes is resolved by no evidence.
//
// What was looked through is not looked through again, but for a stretch behind it:
// evidence that becomes visible within the rule's look-back after it began (fifteen minutes at
// least, an hour at most) is found by the next pass. What becomes visible later than that, begins
// more than a day before it is looked for, or belongs to none of the newest 20,000 open alerts of its
// rule is not found; age or a person resolves those alerts. So a server that lags delays
// evidence, and an outage of ClickHouse does too: the mark stays, and nothing is resolved by
// what cannot be read. An exchange that is found completed and later failed after all leaves
// the alert resolved, and raises an alert of its own like any other that fails.
package resolution

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/rules"
)

// Rule is a rule that was taken on.
type Rule struct {
	ID         uuid.UUID
	TenantID   string
	Resolution rules.Resolution
	LookBack   time.Duration
	// TakenAt is when, by Postgres's clock.
	TakenAt time.Time
	// Searched is how far this evidence was looked for; nil before the first time.
	Searched *Searched
}

// Searched is how far evidence was looked for: what began before ToNS, by the source's clock,
// for alerts raised before At.
type Searched struct {
	ToNS int64
	At   time.Time
}

// Key is what a failed exchange and the one that is evidence have in common; Value is the
// correlation id or the attribute.
type Key struct{ Environment, Application, Route, Value string }

// Open is an alert that is open.
type Open struct {
	ID      uuid.UUID
	FiredAt time.Time
	// EndedNS is when its exchange ended, or began where the source does not tell the end, or
	// one before that. ExecutionID is its key.
	EndedNS     int64
	ExecutionID string
	Key         Key
}

// Query asks for exchanges that completed.
type Query struct {
	TenantID string
	// Attribute is the key of the attribute that is compared; empty compares correlation ids.
	Attribute string
	// Values are those that are looked for, Routes those of the failed exchanges.
	Values, Routes []string
	// FromNS is inclusive, ToNS exclusive, of the start.
	FromNS, ToNS int64
}

// Completed is the exchange of a key that began last.
type Completed struct {
	Key Key
	cursor.Position
}

// Source finds evidence.
type Source interface {
	// Now returns the source's clock, in nanoseconds since the Unix epoch.
	Now(ctx context.Context) (int64, error)
	// LastCompleted returns, for each key with one of the values, the exchange that completed
	// and began last.
	LastCompleted(ctx context.Context, q Query) ([]Completed, error)
}

// Proof is the evidence by which an alert is resolved.
type Proof struct {
	AlertID  uuid.UUID
	Evidence alerts.Resolution
}

// Store holds rules and alerts.
type Store interface {
	// Take takes on the rule that nobody has for longest, nor for so long; nil is none.
	Take(ctx context.Context, every time.Duration) (*Rule, error)
	// ResolveAged resolves alerts that are too old, at most so many, and returns how many.
	ResolveAged(ctx context.Context, r *Rule, most int) (int, error)
	// Open returns the open alerts of a rule, the newest first, that come after one.
	Open(ctx context.Context, r *Rule, after *Open, most int) ([]Open, error)
	// ResolveProven resolves those alerts that are open still, and returns how many.
	ResolveProven(ctx context.Context, r *Rule, proofs []Proof) (int, error)
	// MarkSearched stores how far evidence was looked for.
	MarkSearched(ctx context.Context, r *Rule, s Searched) error
}

// Resolver resolves alerts. All fields are required.
type Resolver struct {
	Store  Store
	Source Source
	Logger *slog.Logger
	// Interval is the time from one pass to the next.
	Interval time.Duration
}

const (
	// pageSize is how many alerts are compared or resolved at once, most how many of a rule.
	pageSize, most = 500, 20_000
	// ruleTimeout is how long a rule may take.
	ruleTimeout = 2 * time.Minute
	// leastBehind is how far behind its mark a pass looks at least. It is longer than the
	// time in which a person can undo that an alert was resolved.
	leastBehind = 15 * time.Minute
	// commitWithin bounds the time in which an alert becomes visible after it was raised.
	commitWithin = 2 * time.Minute
	// mostBehind is how far behind its mark a pass looks at most, longest how far back
	// evidence is looked for.
	mostBehind, longest = time.Hour, 24 * time.Hour
	// valueBytes bounds the values that are compared.
	valueBytes = 256
)

// Result is what a pass has done.
type Result struct{ Rules, Aged, Proven, Failed int }

// Run makes passes until ctx ends. Between them is the interval, however long they take.
func (r *Resolver) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(r.Interval):
		}
		result, err := r.Tick(ctx)
		if err != nil && ctx.Err() == nil {
			r.Logger.WarnContext(ctx, "alerts not resolved by age or evidence", slog.Any("error", err))
		}
		if result.Aged+result.Proven > 0 {
			r.Logger.InfoContext(ctx, "alerts resolved", slog.Int("by_age", result.Aged), slog.Int("by_evidence", result.Proven))
		}
	}
}

// Tick is one pass over the rules that are due. A rule that fails holds up no other; its
// error is logged, and it is due again at the next pass.
func (r *Resolver) Tick(ctx context.Context) (Result, error) {
	var result Result
	began := time.Now() //nolint:forbidigo // a duration alone
	for {
		// Due is what nobody has taken on for half of the interval before the pass began:
		// a replica that is a little early finds its own rules due, and none twice.
		rule, err := r.Store.Take(ctx, r.Interval/2+time.Since(began))
		if err != nil || rule == nil {
			return result, err
		}
		result.Rules++
		if err := r.resolve(ctx, rule, &result); err != nil {
			if ctx.Err() != nil {
				return result, err
			}
			result.Failed++
			r.Logger.WarnContext(ctx, "alerts of a rule not resolved by age or evidence",
				slog.String("rule_id", rule.ID.String()), slog.Any("error", err))
		}
	}
}

func (r *Resolver) resolve(ctx context.Context, rule *Rule, result *Result) error {
	ctx, cancel := context.WithTimeout(ctx, ruleTimeout)
	defer cancel()
	var err error
	for rule.Resolution.AfterSeconds > 0 {
		n, failed := r.Store.ResolveAged(ctx, rule, pageSize)
		result.Aged += n
		if err = failed; err != nil || n < pageSize {
			break
		}
	}
	if rule.Resolution.Evidence == "" {
		return err
	}
	return errors.Join(err, r.search(ctx, rule, result))
}

// search looks for evidence.
func (r *Resolver) search(ctx context.Context, rule *Rule, result *Result) error {
	nowNS, err := r.Source.Now(ctx)
	if err != nil {
		return fmt.Errorf("look for evidence: %w", err)
	}
	var after *Open
	for seen := 0; seen < most; seen += pageSize {
		page, err := r.Store.Open(ctx, rule, after, pageSize)
		if err != nil {
			return err
		}
		if q := QueryOf(rule, page, nowNS); len(q.Values) > 0 {
			found, err := r.Source.LastCompleted(ctx, q)
			if err != nil {
				return fmt.Errorf("look for evidence: %w", err)
			}
			proven, err := r.Store.ResolveProven(ctx, rule, Proofs(page, found))
			result.Proven += proven
			if err != nil {
				return err
			}
		}
		if len(page) < pageSize {
			break
		}
		after = &page[len(page)-1]
	}
	return r.Store.MarkSearched(ctx, rule, Searched{ToNS: nowNS, At: rule.TakenAt})
}

// QueryOf returns what to ask about alerts at an instant of the source's clock.
func QueryOf(rule *Rule, page []Open, nowNS int64) Query {
	q := Query{TenantID: rule.TenantID, FromNS: nowNS, ToNS: nowNS}
	byRoute := rule.Resolution.Evidence == rules.EvidenceAttribute
	if byRoute {
		q.Attribute = rule.Resolution.Attribute
	}
	for i := range page {
		if !page[i].Key.comparable(byRoute) {
			continue
		}
		q.FromNS = min(q.FromNS, max(rule.fromNS(&page[i]), nowNS-longest.Nanoseconds()))
		q.Values = append(q.Values, page[i].Key.Value)
		q.Routes = append(q.Routes, page[i].Key.Route)
	}
	slices.Sort(q.Values)
	slices.Sort(q.Routes)
	q.Values, q.Routes = slices.Compact(q.Values), slices.Compact(q.Routes)
	return q
}

// fromNS returns the start time from which on evidence for an alert is looked for.
func (r *Rule) fromNS(a *Open) int64 {
	if r.Searched == nil || !a.FiredAt.Before(r.Searched.At.Add(-commitWithin)) {
		return a.EndedNS
	}
	return max(a.EndedNS, r.Searched.ToNS-min(max(r.LookBack, leastBehind), mostBehind).Nanoseconds())
}

// comparable reports whether a key is there as the source has it.
func (k *Key) comparable(byRoute bool) bool {
	odd := func(text string) bool { return strings.ContainsRune(text, '\uFFFD') || strings.HasSuffix(text, "…") }
	if k.Value == "" || len(k.Value) > valueBytes || odd(k.Value) {
		return false
	}
	return (k.Route != "" || !byRoute) && !odd(k.Environment) && !odd(k.Application) && !odd(k.Route)
}

// Proofs returns which alerts the exchanges that were found resolve.
func Proofs(page []Open, found []Completed) []Proof {
	last := make(map[Key]*Completed, len(found))
	for i := range found {
		last[found[i].Key] = &found[i]
	}
	var proofs []Proof
	for i := range page {
		a := &page[i]
		c := last[a.Key]
		if c == nil || c.StartTimeNS <= a.EndedNS || cursor.Key(c.ExecutionID) == a.ExecutionID {
			continue
		}
		proofs = append(proofs, Proof{a.ID, alerts.Resolution{
			Reason: alerts.ByEvidence, ExecutionID: cursor.Key(c.ExecutionID), StartTimeNS: new(c.StartTimeNS),
		}})
	}
	return proofs
}
