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
// what cannot be read. Where looking fails, as when it takes too long, less time is read at once, and
// after some failures in a row the alerts wait, for ten minutes at most. One query looks for the
// evidence of up to 500 alerts, of all rules of a tenant that compare the same. An exchange that is found completed and later failed after all leaves
// the alert resolved, and raises an alert of its own like any other that fails.
package resolution

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
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
	// Values are those that are looked for, Routes those of the failed exchanges; none are all.
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

// Resolver resolves alerts. All fields are required. It is not safe for concurrent use.
type Resolver struct {
	Store  Store
	Source Source
	Logger *slog.Logger
	// Interval is the time from one pass to the next.
	Interval time.Duration

	// sliceNS is how much time is read at once, as it went of late; 0 at first.
	sliceNS int64
	// waits holds how long evidence is not looked for where that failed.
	waits map[place]wait
}

type wait struct {
	until  time.Time
	length time.Duration
}

const (
	// pageSize is how many alerts are compared or resolved at once, most how many of a rule.
	pageSize, most = 500, 20_000
	// takenMost is how many rules are taken on at once.
	takenMost = 50
	// ruleTimeout is how long a rule, or those that are looked through together, may take.
	ruleTimeout = 2 * time.Minute
	// longestWait is how long evidence is not looked for at most after a failure.
	longestWait = 10 * time.Minute
	// longestSliceNS and shortestSliceNS bound how much time is read at once, failuresMost how
	// often in a row that may fail.
	longestSliceNS, shortestSliceNS = int64(4 * time.Hour), int64(time.Minute)
	failuresMost                    = 4
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

// take takes on rules, at most so many at once. Due is what nobody has taken on for half of the
// interval before the pass began: a replica that is a little early finds its own rules due, and
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
	r.Logger.WarnContext(ctx, "alerts of a rule not resolved by age or evidence",
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

// place is what rules have in common whose evidence one query finds.
type place struct{ tenant, attribute string }

func (r *Rule) place() place {
	p := place{tenant: r.TenantID}
	if r.Resolution.Evidence == rules.EvidenceAttribute {
		p.attribute = r.Resolution.Attribute
	}
	return p
}

// byEvidence returns the rules that resolve by evidence, together those whose evidence one query
// finds, in the order in which they were taken on.
func byEvidence(taken []*Rule) (together [][]*Rule) {
	at := map[place]int{}
	for _, rule := range taken {
		if rule.Resolution.Evidence == "" {
			continue
		}
		n, known := at[rule.place()]
		if !known {
			n = len(together)
			at[rule.place()], together = n, append(together, nil)
		}
		together[n] = append(together[n], rule)
	}
	return together
}

// searching is a rule whose alerts are being looked through.
type searching struct {
	*Rule
	page []Open
	seen int
	done bool
	// failed is why it is looked through no further.
	failed error
}

// next reads the next page of a rule's alerts.
func (s *searching) next(ctx context.Context, store Store) error {
	var after *Open
	if len(s.page) > 0 {
		after = &s.page[len(s.page)-1]
	}
	page, err := store.Open(ctx, s.Rule, after, pageSize)
	s.page, s.seen = page, s.seen+len(page)
	s.done = len(page) < pageSize || s.seen >= most
	return err
}

// search looks for evidence for the alerts of rules of one place, so many alerts by one query as
// one page holds. After a failure it waits, longer each time.
func (r *Resolver) search(ctx context.Context, alike []*Rule, result *Result) error {
	at := alike[0].place()
	if time.Now().Before(r.waits[at].until) { //nolint:forbidigo // a duration alone
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, ruleTimeout)
	defer cancel()
	failed, err := r.searchAll(ctx, alike, result)
	if r.waits == nil {
		r.waits = map[place]wait{}
	}
	if err == nil {
		delete(r.waits, at)
	}
	if failed {
		length := min(max(2*r.waits[at].length, r.Interval), longestWait)
		r.waits[at] = wait{time.Now().Add(length), length} //nolint:forbidigo // a duration alone
	}
	return err
}

// searchAll reports whether looking for evidence failed although the source answers.
func (r *Resolver) searchAll(ctx context.Context, alike []*Rule, result *Result) (failed bool, err error) {
	nowNS, err := r.Source.Now(ctx)
	if err != nil {
		return false, fmt.Errorf("look for evidence: %w", err)
	}
	open := make([]*searching, len(alike))
	for i, rule := range alike {
		open[i] = &searching{Rule: rule}
	}
	for len(open) > 0 {
		var together []*searching
		q := Query{TenantID: alike[0].TenantID, Attribute: alike[0].place().attribute, FromNS: nowNS, ToNS: nowNS}
		n, asked := 0, 0
		for ; asked < len(open) && n < pageSize; asked++ {
			s := open[asked]
			if s.failed = s.next(ctx, r.Store); s.failed == nil {
				together, n = append(together, s), n+len(s.page)
				q.add(s.Rule, s.page, nowNS)
			}
		}
		found, sourceErr := r.find(ctx, q)
		for _, s := range together {
			proven, err := r.Store.ResolveProven(ctx, s.Rule, Proofs(s.page, found))
			result.Proven += proven
			if err == nil && sourceErr == nil && s.done {
				err = r.Store.MarkSearched(ctx, s.Rule, Searched{ToNS: nowNS, At: s.TakenAt})
			}
			s.failed = err
		}
		for _, s := range open[:asked] {
			if s.failed != nil {
				err = errors.Join(err, fmt.Errorf("rule %s: %w", s.ID, s.failed))
			}
		}
		if sourceErr != nil {
			return true, errors.Join(err, fmt.Errorf("look for evidence: %w", sourceErr))
		}
		// Those that have more alerts come again after the others.
		open = slices.DeleteFunc(slices.Concat(open[asked:], open[:asked]), func(s *searching) bool { return s.done || s.failed != nil })
	}
	return false, err
}

// find finds, for each key, the exchange that completed and began last. It reads slice after
// slice of time, the newest first; one that fails is read in halves. That the halves are too
// much as well, or that the source cannot be read, is an error; it comes with what newer slices
// hold.
func (r *Resolver) find(ctx context.Context, q Query) ([]Completed, error) {
	if len(q.Values) == 0 {
		return nil, nil
	}
	last := map[Key]Completed{}
	if r.sliceNS == 0 {
		r.sliceNS = longestSliceNS
	}
	for failures, toNS := 0, q.ToNS; toNS > q.FromNS; {
		slice := q
		slice.FromNS, slice.ToNS = max(q.FromNS, toNS-r.sliceNS), toNS
		found, err := r.Source.LastCompleted(ctx, slice)
		if err != nil {
			if failures++; failures == failuresMost || ctx.Err() != nil {
				return slices.Collect(maps.Values(last)), err
			}
			r.sliceNS = max(min(r.sliceNS, toNS-slice.FromNS)/2, shortestSliceNS)
			continue
		}
		for _, c := range found {
			if known, ok := last[c.Key]; !ok || c.StartTimeNS > known.StartTimeNS {
				last[c.Key] = c
			}
		}
		failures, toNS = 0, slice.FromNS
		r.sliceNS = min(r.sliceNS*5/4, longestSliceNS)
	}
	return slices.Collect(maps.Values(last)), nil
}

// QueryOf returns what to ask about alerts of a rule at an instant of the source's clock.
func QueryOf(rule *Rule, page []Open, nowNS int64) Query {
	q := Query{TenantID: rule.TenantID, Attribute: rule.place().attribute, FromNS: nowNS, ToNS: nowNS}
	q.add(rule, page, nowNS)
	return q
}

// add adds what to ask about alerts of a rule.
func (q *Query) add(rule *Rule, page []Open, nowNS int64) {
	byRoute := rule.Resolution.Evidence == rules.EvidenceAttribute
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
