package evaluator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/cursor"
	"tocsin/internal/fault"
	"tocsin/rules"
)

// A reconciliation asks both databases what ought to be true: every exchange
// that matches a rule has an alert of it. It shares no state with the ticks,
// and finds the exchanges by another way than they: ClickHouse judges, by the
// predicate of each condition of the rule.
//
// It looks at what ended between the rule's arming (or so many hours ago) and a
// margin before the rule's cursor, and before all that its look-back still owes, so
// that what is merely not judged yet is not missing. What became visible only just before may still be found by the next
// whole comparison of the look-back; with Confirm, a reconciliation waits for
// it and asks again.

// MatchedQuery asks for the exchanges of a tenant that a condition matches.
type MatchedQuery struct {
	TenantID string
	Scope    rules.Scope
	Filter   rules.Filter
	// EndedFromNS is inclusive, EndedToNS exclusive. Where the source does not
	// tell the end, the start stands for it.
	EndedFromNS, EndedToNS int64
	// After is the position strictly after which the answer begins, BeforeNS the
	// start time before which it ends, exclusive.
	After    cursor.Position
	BeforeNS int64
	// Limit is the most exchanges to return, at least 1.
	Limit int
}

// Matched is an exchange that matches.
type Matched struct {
	cursor.Position
	EndedNS int64
}

// MatchSource finds exchanges by condition.
type MatchSource interface {
	// Matched returns exchanges in the order of their positions, at most q.Limit;
	// fewer mean that there are no more. One whose row is there twice may be
	// returned twice.
	Matched(ctx context.Context, q MatchedQuery) ([]Matched, error)
}

// AlertSet knows which alerts there are.
type AlertSet interface {
	// Reconcilable returns a rule with its former conditions, and how far it has come,
	// nil before the first run. An unknown rule is a fault of kind NotFound.
	Reconcilable(ctx context.Context, tenant string, rule uuid.UUID) (rules.Rule, *Progress, error)
	// WithoutAlert returns those keys of exchanges for which the rule has no
	// alert, in their order.
	WithoutAlert(ctx context.Context, rule uuid.UUID, keys []string) ([]string, error)
	// AlertsEnded counts the rule's alerts on exchanges that ended in a range,
	// fromNS inclusive, toNS exclusive.
	AlertsEnded(ctx context.Context, rule uuid.UUID, fromNS, toNS int64) (int64, error)
}

// Progress is how far a rule has come: its cursor, or the present where that is ahead,
// and the start time from which on it owes a look-back beside the one counted from
// there, nil for none.
type Progress struct {
	At         cursor.Position
	OwedFromNS *int64
}

// Reconciler compares exchanges with alerts. It is safe for concurrent use.
type Reconciler struct {
	Source MatchSource
	Alerts AlertSet
	// Confirm is how long to wait before what is missing is looked for again; 0
	// is not at all.
	Confirm time.Duration
	// PageSize is how many exchanges are compared at once, 20,000 by default.
	PageSize int
}

// Reconciliation is how a rule's alerts compare with what matches.
type Reconciliation struct {
	RuleID   uuid.UUID
	RuleName string
	// FromNS and ToNS are the range of ends that was compared, empty where the
	// rule has judged nothing yet.
	FromNS, ToNS int64
	// Matching is the number of exchanges that match, Alerted how many of them
	// have their alert, and Missing how many do not although they should.
	Matching, Alerted, Missing int64
	// MissingSample holds the ids of the first few that are missing, as alerts
	// would show them.
	MissingSample []string
	// OutOfReach is how many have no alert because they ran for as long as the
	// rule looks back, and so became visible behind everything that it reads.
	OutOfReach int64
	// Unexpected is the number of alerts whose exchange is not among those that
	// match: it was deleted from the source, or its row has changed.
	Unexpected int64
}

const (
	defaultReconcilePage = 20_000
	// missingSample is how many ids a reconciliation names.
	missingSample = 10
	// reconcileMargin is the least distance to the cursor.
	reconcileMargin = 2 * minuteNS
)

// Rule compares the last stretch of time of one rule.
func (r *Reconciler) Rule(ctx context.Context, tenant string, id uuid.UUID, last time.Duration) (Reconciliation, error) {
	rule, progress, err := r.Alerts.Reconcilable(ctx, tenant, id)
	if err != nil {
		return Reconciliation{}, fmt.Errorf("reconcile: %w", err)
	}
	if rule.FireMode != rules.PerExchange {
		return Reconciliation{}, fault.New(fault.Conflict, "a rule that counts has no alert for each exchange; only PER_EXCHANGE rules can be reconciled")
	}
	result := Reconciliation{RuleID: rule.ID, RuleName: rule.Name}
	if progress == nil {
		return result, nil
	}
	at := progress.At
	result.ToNS = at.StartTimeNS - max(reconcileMargin, slackNS(&rule))
	result.FromNS = at.StartTimeNS - last.Nanoseconds()
	if progress.OwedFromNS != nil {
		// What has ended before has begun before.
		result.ToNS = min(result.ToNS, *progress.OwedFromNS)
	}
	eras := append(slices.Clone(rule.Former), rules.Era{Scope: rule.Scope, Filter: rule.Filter, FromNS: rule.ArmedSinceNS, ToNS: cursor.MaxStartTimeNS})
	result.FromNS = min(max(result.FromNS, eras[0].FromNS), result.ToNS)
	var missing []string
	for _, era := range eras {
		era.FromNS, era.ToNS = max(era.FromNS, result.FromNS), min(era.ToNS, result.ToNS)
		if era.FromNS >= era.ToNS {
			continue
		}
		without, err := r.era(ctx, &rule, era, &result)
		if err != nil {
			return Reconciliation{}, fmt.Errorf("reconcile rule %s: %w", rule.ID, err)
		}
		missing = append(missing, without...)
	}
	if missing, err = r.confirm(ctx, rule.ID, missing, &result); err != nil {
		return Reconciliation{}, fmt.Errorf("reconcile rule %s: %w", rule.ID, err)
	}
	result.Missing = int64(len(missing))
	result.MissingSample = missing[:min(len(missing), missingSample)]
	alerted, err := r.Alerts.AlertsEnded(ctx, rule.ID, result.FromNS, result.ToNS)
	if err != nil {
		return Reconciliation{}, fmt.Errorf("reconcile rule %s: %w", rule.ID, err)
	}
	result.Unexpected = max(0, alerted-result.Alerted)
	return result, nil
}

// slackNS is how long what became visible may take to be found.
func slackNS(rule *rules.Rule) int64 {
	return waitNS(int64(rule.LookBackSeconds)*secondNS) + 2*int64(rule.IntervalSeconds)*secondNS
}

// era compares the exchanges on which one condition decides, and returns the
// keys of those that should have an alert and have none.
func (r *Reconciler) era(ctx context.Context, rule *rules.Rule, era rules.Era, result *Reconciliation) ([]string, error) {
	lookBack := int64(rule.LookBackSeconds) * secondNS
	reach := max(0, lookBack-slackNS(rule))
	var missing []string
	// What ran for even longer than twice the look-back and an hour is not looked for.
	within := MatchedQuery{
		TenantID: rule.TenantID, Scope: era.Scope, Filter: era.Filter, EndedFromNS: era.FromNS, EndedToNS: era.ToNS,
		After: cursor.Position{StartTimeNS: era.FromNS - 2*lookBack - 60*minuteNS}, BeforeNS: era.ToNS, Limit: orDefault(r.PageSize, defaultReconcilePage),
	}
	for {
		page, err := r.Source.Matched(ctx, within)
		if err != nil {
			return nil, err
		}
		// A page ends strictly before the next begins, so rows that are there
		// twice stand side by side, or the second is left out.
		var keys []string
		ran := make(map[string]int64, len(page))
		for i := range page {
			if (i > 0 && page[i].Position == page[i-1].Position) || page[i].StartTimeNS < rule.SweptBeforeNS {
				continue
			}
			key := cursor.Key(page[i].ExecutionID)
			keys = append(keys, key)
			ran[key] = page[i].EndedNS - page[i].StartTimeNS
		}
		without, err := r.Alerts.WithoutAlert(ctx, rule.ID, keys)
		if err != nil {
			return nil, err
		}
		result.Matching += int64(len(keys))
		result.Alerted += int64(len(keys) - len(without))
		for _, key := range without {
			if ran[key] > reach {
				result.OutOfReach++
				continue
			}
			missing = append(missing, key)
		}
		if len(page) < within.Limit {
			return missing, nil
		}
		within.After = page[len(page)-1].Position
	}
}

// confirm waits, and returns the keys that still have no alert.
func (r *Reconciler) confirm(ctx context.Context, rule uuid.UUID, missing []string, result *Reconciliation) ([]string, error) {
	if len(missing) == 0 || r.Confirm == 0 {
		return missing, nil
	}
	timer := time.NewTimer(r.Confirm)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil, errors.New("ended before what is missing was confirmed")
	case <-timer.C:
	}
	var still []string
	for chunk := range slices.Chunk(missing, orDefault(r.PageSize, defaultReconcilePage)) {
		without, err := r.Alerts.WithoutAlert(ctx, rule, chunk)
		if err != nil {
			return nil, err
		}
		still = append(still, without...)
	}
	result.Alerted += int64(len(missing) - len(still))
	return still, nil
}
