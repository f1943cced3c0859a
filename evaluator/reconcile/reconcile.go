// Package reconcile compares alerts with exchanges: every exchange that matches a rule has an alert
// of it, and the alerts of a window rule agree with the exchanges (windows.go, values.go, stretches.go). It shares no state
// with the evaluation, and finds the exchanges in another way: ClickHouse evaluates, by the predicate
// of each condition of the rule.
//
// A comparison covers what ended between the rule's arming (or a number of hours ago) and a margin
// before the rule's position, and before everything behind it that is still to be evaluated: what is
// only not evaluated yet is not missing. An exchange that became visible beyond the look-back of its rule
// is late-dropped: it is counted, but not missing. That is so if it ran for longer than the rule looks
// back, or if an earlier comparison proves it (comparison.go).
package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/cursor"
	"tocsin/evaluator/backlog"
	"tocsin/rules"
)

// MatchedQuery asks for the exchanges of a tenant that a condition matches.
type MatchedQuery struct {
	TenantID string
	Scope    rules.Scope
	Filter   rules.Filter
	// EndedFromNS is inclusive, EndedToNS exclusive. If the source has no end, the start counts.
	EndedFromNS, EndedToNS int64
	// After is the position after which the answer begins, exclusive. BeforeNS is the start time
	// before which it ends, exclusive.
	After    cursor.Position
	BeforeNS int64
	// Limit is how many exchanges to return at most, at least 1.
	Limit int
}

// Matched is an exchange that matches.
type Matched struct {
	cursor.Position
	EndedNS int64
}

// MatchSource finds exchanges by condition.
type MatchSource interface {
	// Matched returns exchanges in the order of their positions, at most q.Limit; fewer mean that
	// there are no more. An exchange with a duplicate row may be returned twice.
	Matched(ctx context.Context, q MatchedQuery) ([]Matched, error)
}

// AlertSet reads which alerts exist.
type AlertSet interface {
	// Reconcilable returns a rule with its former conditions, and its progress; nil before the
	// first run. An unknown rule is a fault of kind NotFound.
	Reconcilable(ctx context.Context, tenant string, rule uuid.UUID) (rules.Rule, *Progress, error)
	// WithoutAlert returns the keys of exchanges for which the rule has no alert, in their order.
	WithoutAlert(ctx context.Context, rule uuid.UUID, keys []string) ([]string, error)
	// AlertsEnded counts the rule's alerts on exchanges that ended in a range, and had not run for
	// longer than longestNS.
	AlertsEnded(ctx context.Context, rule uuid.UUID, ended cursor.Range, longestNS int64) (int64, error)
}

// Progress is how far a rule has come.
type Progress struct {
	// At is the rule's own position or the cursor of its partition, at most the present.
	At cursor.Position
	// BackfillFromNS is the earliest start time behind At that is still to be evaluated; nil if there
	// is none.
	BackfillFromNS *int64
	// LookBackFromNS is the start time from which the look-back of the rule is counted: that of At, or an
	// earlier one while something behind At is still to be evaluated.
	LookBackFromNS int64
	// Earlier is what the last comparison left that was stored; nil if there is none.
	Earlier *Comparison
}

// Reconciler compares exchanges with alerts. It is safe for concurrent use.
type Reconciler struct {
	Source MatchSource
	Alerts AlertSet
	// Windows and Groups are for window rules.
	Windows WindowSource
	Groups  WindowAlerts
	// Confirm is how long to wait before missing alerts are looked for again; 0 means not at all. For a
	// rule that looks back for more than an hour it is at least as long as that takes.
	Confirm time.Duration
	// Keep is how long alerts are kept after they were resolved; 0 means for ever. What is older
	// cannot be checked for window rules.
	Keep time.Duration
	// WindowRuleMost bounds the time for comparing one window rule, 5 minutes by default. What is
	// not reached in that time is not checked.
	WindowRuleMost time.Duration
	// PageSize is how many exchanges are compared at once, 20,000 by default.
	PageSize int
	// Behind is how much of the time behind the look-back of a rule that looks back for an hour or longer is
	// compared as well, to count what became visible too late; 0 means nothing.
	Behind time.Duration
}

// Reconciliation is the comparison of a rule's alerts with the matching exchanges.
type Reconciliation struct {
	RuleID             uuid.UUID
	RuleName, TenantID string
	// FromNS and ToNS are the range of ends that was compared; empty if the rule has evaluated nothing
	// yet.
	FromNS, ToNS int64
	// Matching is the number of matching exchanges. Alerted is how many of them have their alert,
	// and Missing how many have none although they should.
	Matching, Alerted, Missing int64
	// MissingSample contains the ids of the first few missing ones, in the form in which alerts
	// show them.
	MissingSample []string
	// LateDropped is how many exchanges have no alert because they became visible beyond the
	// look-back, including those behind it. LateDroppedByHour counts those of them that ran for
	// longer than that, by the hour in which they ended, in nanoseconds since the Unix epoch.
	// LateDroppedNew is how many of the others the earlier comparisons that were stored have not
	// counted.
	LateDropped       int64
	LateDroppedByHour map[int64]int64
	LateDroppedNew    int64
	// Comparison is to be stored for the next comparisons. It is nil for a window rule, and if nothing
	// was compared.
	Comparison *Comparison
	// Unexpected is the number of alerts whose exchange does not match: it was deleted from the
	// source, or its row has changed. For a window rule, it is the number of alerts that fired, are
	// open or were resolved without a reason.
	Unexpected int64

	// Of a window rule, Matching is the number of stretches of time in which a group surely
	// reached the threshold for long enough, Alerted how many of them had their alert. Different
	// alerts counted something else than the table contains, Late ones did not count what became visible up to
	// LateBy later; Unchecked is what cannot be checked. Findings are the first few of each kind.
	Different, Late, Unchecked int64
	LateBy                     time.Duration
	Findings                   []Finding
}

const (
	defaultPageSize       = 20_000
	defaultWindowRuleMost = 5 * time.Minute
	// missingSample is how many ids a reconciliation lists.
	missingSample = 10
	secondNS      = int64(1e9)
	minuteNS      = 60 * secondNS
	hourNS        = 60 * minuteNS
	// leastMarginNS is the least distance to the rule's position.
	leastMarginNS = 2 * minuteNS
	// raisedWithin is how long it may take from a look to the alerts of what it found.
	raisedWithin = 20 * time.Second
)

// Rule compares one rule over the time last.
func (r *Reconciler) Rule(ctx context.Context, tenant string, id uuid.UUID, last time.Duration) (Reconciliation, error) {
	rule, progress, err := r.Alerts.Reconcilable(ctx, tenant, id)
	if err != nil {
		return Reconciliation{}, fmt.Errorf("reconcile: %w", err)
	}
	result := Reconciliation{RuleID: rule.ID, RuleName: rule.Name, TenantID: rule.TenantID}
	if progress == nil {
		return result, nil
	}
	if rule.FireMode.Windowed() {
		if result, err = r.window(ctx, &rule, progress.At, last); err != nil {
			return Reconciliation{}, fmt.Errorf("reconcile rule %s: %w", rule.ID, err)
		}
		return result, nil
	}
	at := progress.At
	result.ToNS = at.StartTimeNS - max(leastMarginNS, backlog.WaitNS(lookBackNS(&rule)))
	result.FromNS = at.StartTimeNS - last.Nanoseconds()
	if progress.BackfillFromNS != nil {
		// What has ended before has also begun before.
		result.ToNS = min(result.ToNS, *progress.BackfillFromNS)
	}
	eras := append(slices.Clone(rule.Former), rules.Era{Scope: rule.Scope, Filter: rule.Filter, FromNS: rule.ArmedSinceNS, ToNS: cursor.MaxStartTimeNS})
	if result.ToNS <= eras[0].FromNS {
		// Everything that ended since the rule was armed is still to be evaluated.
		return Reconciliation{RuleID: rule.ID, RuleName: rule.Name, TenantID: rule.TenantID}, nil
	}
	result.FromNS = min(max(result.FromNS, eras[0].FromNS), result.ToNS)
	c := comparing{rule: &rule, earlier: earlierOf(&rule, progress), result: &result}
	compared := cursor.Range{FromNS: result.FromNS, ToNS: result.ToNS}
	if err := r.eras(ctx, &c, eras, compared); err != nil {
		return Reconciliation{}, fmt.Errorf("reconcile rule %s: %w", rule.ID, err)
	}
	missing, err := r.confirm(ctx, &rule, c.missing, &result)
	if err != nil {
		return Reconciliation{}, fmt.Errorf("reconcile rule %s: %w", rule.ID, err)
	}
	if compared.FromNS < compared.ToNS {
		b := comparing{rule: &rule, earlier: c.earlier, result: &Reconciliation{}, behind: true}
		behind, err := r.behind(ctx, &b, eras, compared.FromNS)
		if err != nil {
			return Reconciliation{}, fmt.Errorf("reconcile rule %s: %w", rule.ID, err)
		}
		late := slices.Concat(c.late, b.late)
		result.LateDropped += b.result.LateDropped
		result.LateDroppedNew = c.earlier.uncounted(late)
		result.Comparison = c.earlier.next(rule.Version, late)
		result.Comparison.add(compared, missing)
		result.Comparison.add(behind, b.missing)
	}
	result.Missing = int64(len(missing))
	result.MissingSample = missing[:min(len(missing), missingSample)]
	alerted, err := r.Alerts.AlertsEnded(ctx, rule.ID, compared, longestNS(&rule))
	if err != nil {
		return Reconciliation{}, fmt.Errorf("reconcile rule %s: %w", rule.ID, err)
	}
	result.Unexpected = max(0, alerted-(result.Alerted-c.longer))
	return result, nil
}

func lookBackNS(rule *rules.Rule) int64 { return int64(rule.LookBackSeconds) * secondNS }

// longestNS is how long an exchange may have run and be looked for in every case. A longer one has an alert
// only by a replay, or from a time when the rule looked back further.
func longestNS(rule *rules.Rule) int64 { return 2*lookBackNS(rule) + hourNS }

// comparing is the state of a comparison.
type comparing struct {
	rule    *rules.Rule
	earlier earlier
	result  *Reconciliation
	// missing are the keys of exchanges that should have an alert and have none, and late of those that
	// are late-dropped by proof of the earlier comparison.
	missing, late []string
	// longer counts the alerted exchanges that are not looked for in every case.
	longer int64
	// behind says that what ended behind the look-back is compared.
	behind bool
}

// ranNS is how long an exchange may have run at least and be looked for.
func (c *comparing) ranNS() int64 {
	if c.behind {
		return hourNS // whatever the look-back: what is read stays small
	}
	return longestNS(c.rule)
}

// eras compares the exchanges that ended in a range.
func (r *Reconciler) eras(ctx context.Context, c *comparing, eras []rules.Era, ended cursor.Range) error {
	for _, era := range eras {
		era.FromNS, era.ToNS = max(era.FromNS, ended.FromNS), min(era.ToNS, ended.ToNS)
		if era.FromNS >= era.ToNS {
			continue
		}
		if err := r.era(ctx, c, era); err != nil {
			return err
		}
	}
	return nil
}

// era compares the exchanges that one condition decides on.
func (r *Reconciler) era(ctx context.Context, c *comparing, era rules.Era) error {
	rule := c.rule
	within := MatchedQuery{
		TenantID: rule.TenantID, Scope: era.Scope, Filter: era.Filter, EndedFromNS: era.FromNS, EndedToNS: era.ToNS,
		After: cursor.Position{StartTimeNS: era.FromNS - c.ranNS()}, BeforeNS: era.ToNS, Limit: cmp.Or(r.PageSize, defaultPageSize),
	}
	for {
		page, err := r.Source.Matched(ctx, within)
		if err != nil {
			return err
		}
		// A page ends strictly before the next one begins, so duplicate rows are adjacent, or the
		// second one is left out.
		var keys []string
		matched := make(map[string]Matched, len(page))
		for i := range page {
			if (i > 0 && page[i].Position == page[i-1].Position) || page[i].StartTimeNS < rule.RetentionFloorNS {
				continue
			}
			key := cursor.Key(page[i].ExecutionID)
			keys = append(keys, key)
			matched[key] = page[i]
		}
		without, err := r.Alerts.WithoutAlert(ctx, rule.ID, keys)
		if err != nil {
			return err
		}
		c.result.Matching += int64(len(keys))
		lacks := setOf(without)
		for _, key := range keys {
			c.add(key, matched[key], lacks[key])
		}
		if len(page) < within.Limit {
			return nil
		}
		within.After = page[len(page)-1].Position
	}
}

// add adds an exchange, which lacks its alert or not.
func (c *comparing) add(key string, m Matched, lacks bool) {
	switch lasted := m.EndedNS - m.StartTimeNS; {
	case !lacks:
		c.result.Alerted++
		if lasted > longestNS(c.rule) {
			c.longer++
		}
	case lasted > lookBackNS(c.rule) && !c.behind:
		c.result.ranLonger(m.EndedNS)
	case c.earlier.lateDropped(c.rule, key, m):
		c.result.LateDropped++
		c.late = append(c.late, key)
	default:
		c.missing = append(c.missing, key)
	}
}

func (r *Reconciliation) ranLonger(endedNS int64) {
	r.LateDropped++
	if r.LateDroppedByHour == nil {
		r.LateDroppedByHour = map[int64]int64{}
	}
	r.LateDroppedByHour[endedNS-endedNS%hourNS]++
}

// confirm waits, and returns the keys that still have no alert. What became visible just before the comparison
// is found by the next look at its part of the look-back.
func (r *Reconciler) confirm(ctx context.Context, rule *rules.Rule, missing []string, result *Reconciliation) ([]string, error) {
	if len(missing) == 0 || r.Confirm == 0 {
		return missing, nil
	}
	wait := r.Confirm
	if every := backlog.CoarseLookEvery(lookBackNS(rule)); every > 0 {
		wait = max(wait, every+raisedWithin)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil, errors.New("stopped before the missing alerts were confirmed")
	case <-timer.C:
	}
	var still []string
	for chunk := range slices.Chunk(missing, cmp.Or(r.PageSize, defaultPageSize)) {
		without, err := r.Alerts.WithoutAlert(ctx, rule.ID, chunk)
		if err != nil {
			return nil, err
		}
		still = append(still, without...)
	}
	result.Alerted += int64(len(missing) - len(still))
	return still, nil
}
