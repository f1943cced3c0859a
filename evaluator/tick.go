package evaluator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"tocsin/cursor"
	"tocsin/notify"
	"tocsin/rules"
)

// Result is what a tick did.
type Result struct {
	// Rules is the number of rules claimed, Failed of those that could not be
	// evaluated, Stale of those whose claim was lost to an edit or another replica.
	Rules, Failed, Stale int
	// Scanned is the number of exchanges read.
	Scanned int
	// Alerts and Notifications were written; Late is how many of the alerts the
	// look-back found.
	Alerts, Notifications, Late int
	// HandedOver is how many of the notifications a dispatcher was given as they
	// were written.
	HandedOver int
	// Waiting counts the others by webhook, as far as it is known whose they are.
	Waiting map[uuid.UUID]int
}

// wakeUp tells of the notifications that no dispatcher was given, if there are any.
func (r *Result) wakeUp() (w notify.WakeUp, owed bool) {
	w.Notifications = r.Notifications - r.HandedOver
	known := 0
	for id, n := range r.Waiting {
		w.Webhooks = append(w.Webhooks, id)
		known += n
	}
	if known != w.Notifications {
		w.Webhooks = nil
	}
	return w, w.Notifications > 0
}

// Run ticks until ctx ends, but for the ticks at which there is nothing to claim.
// One that fails is logged, and the next one does its work.
func (e *Evaluator) Run(ctx context.Context) {
	ticker := time.NewTicker(e.Interval)
	defer ticker.Stop()
	for {
		result, err := e.Tick(ctx)
		if e.Observer != nil {
			e.Observer.Ticked(result)
		}
		switch {
		case err != nil:
			e.Logger.ErrorContext(ctx, "tick failed", slog.Any("error", err))
		case result.Alerts > 0 || result.Stale > 0:
			e.Logger.InfoContext(ctx, "tick done",
				slog.Int("rules", result.Rules), slog.Int("failed", result.Failed), slog.Int("stale", result.Stale),
				slog.Int("scanned", result.Scanned), slog.Int("alerts", result.Alerts), slog.Int("notifications", result.Notifications))
		}
		if !e.rest(ctx, ticker.C) {
			return
		}
	}
}

// Tick is one pass: it evaluates the rules that are due. With an error, the
// rules not yet released stay claimed until their claim lapses.
//
// When stop ends, the tick finishes the page at hand, commits it and releases
// its rules, so that another replica goes on at once.
func (e *Evaluator) Tick(stop context.Context) (Result, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(stop), e.ClaimFor)
	defer cancel()
	began := e.Clock()
	e.askAt = time.Time{}
	loaded, err := e.Store.Load(ctx, ClaimRequest{Replica: e.Replica, Most: e.ClaimMost, For: e.ClaimFor, Grace: cohortGrace, Rest: e.Rest})
	if err != nil {
		return Result{}, fmt.Errorf("load rules: %w", err)
	}
	claims := loaded.Claims
	if len(claims) == 0 {
		e.askAt = began.Add(min(loaded.Idle, e.Rest))
	}
	t := &tick{Evaluator: e, deadline: began.Add(e.Budget), result: Result{Waiting: map[uuid.UUID]int{}}}
	t.spent = func() bool { return stop.Err() != nil || !e.Clock().Before(t.deadline) }
	if len(claims) > 0 {
		t.claimed = claims[0].Now
	}
	result, err := t.run(ctx, claims)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		e.pace.ranOut()
	case err == nil:
		e.pace.kept(e.Clock().Sub(began), t.pages, e.Budget)
	}
	// What was committed is owed, whatever became of the rest.
	if w, owed := result.wakeUp(); owed {
		if err := e.Publisher.Publish(context.WithoutCancel(stop), w); err != nil {
			e.Logger.WarnContext(ctx, "wake-up not published", slog.Any("error", err))
		}
	}
	return result, err
}

// run evaluates what was claimed.
func (t *tick) run(ctx context.Context, claims []Claim) (Result, error) {
	judges, cohorts, err := t.prepare(ctx, claims)
	if err != nil || len(judges)+len(cohorts) == 0 {
		return t.result, err
	}
	if err := t.readHorizon(ctx); err != nil {
		all := group{judges: judges, cohorts: cohorts}
		return t.result, t.failAll(ctx, &all, err)
	}
	counting, scanning := split(judges)
	if err := t.inTurn(ctx, groups(partiesOf(scanning, cohorts), byTenant), counting); err != nil {
		return t.result, err
	}
	t.tell(ctx)
	t.join(ctx)
	t.ledger.sweep(t.horizon.StartTimeNS)
	t.cache.sweep(t.Clock())
	t.sweepCohorts(t.Clock())
	return t.result, nil
}

// split parts the rules that count from those that scan.
func split(judges []*judge) (counting, scanning []*judge) {
	for _, j := range judges {
		switch j.claim.Rule.FireMode {
		case rules.CountInWindow:
			j.owedFromNS = owesNothing // it looks at its windows, not back
			counting = append(counting, j)
		case rules.PerExchange:
			scanning = append(scanning, j)
		}
	}
	return counting, scanning
}

// tick is the state of one pass.
type tick struct {
	*Evaluator
	// spent reports whether the tick has to come to its end, by its deadline or because
	// the process stops.
	spent    func() bool
	deadline time.Time
	horizon  cursor.Position
	// readAt is when the horizon was read, by the clock of this process.
	readAt time.Time
	// turnAt is when the tenant, or the count, before the one at hand was done.
	turnAt time.Time
	// claimed is the instant of the claim, by the clock of the store; zero where
	// the store tells none.
	claimed time.Time
	// pages is how many were read.
	pages int
	// owes is how many seconds of look-backs are left to judge, owesFromNS where the
	// first of them begins.
	owes       int
	owesFromNS int64
	// drained are the rules, each alone, that were judged up to the horizon.
	drained []*judge
	result  Result
}

// prepare compiles the claimed rules, and makes the claimed cohorts ready. Rules
// that do not compile, or whose cursors leave them nothing to judge, fail alone.
func (t *tick) prepare(ctx context.Context, claims []Claim) (judges []*judge, cohorts []*cohort, err error) {
	slab, stands := make([]judge, len(claims)), make([]stand, len(claims))
	now := t.Clock()
	for i := range claims {
		c := &claims[i]
		if c.Cohort != nil {
			entered, err := t.enter(ctx, c)
			if err != nil {
				return nil, nil, err
			}
			if entered != nil {
				cohorts = append(cohorts, entered)
				t.result.Rules += len(entered.judges)
			}
			continue
		}
		t.result.Rules++
		err := c.Err
		var compiled *rules.Judge
		if err == nil {
			compiled, err = t.cache.compile(&c.Rule, now)
		}
		j := &slab[i]
		stands[i] = stand{
			id: c.Rule.ID, version: c.Rule.Version, tenantID: c.Rule.TenantID, lookBackSeconds: c.Rule.LookBackSeconds,
			from: c.From, at: c.Start(), start: c.Start(), owedFromNS: owedIn(c), unreachedNS: owesNothing,
		}
		*j = judge{claim: *c, Judge: compiled, stand: &stands[i]}
		if err == nil {
			err = j.checkCursor()
		}
		if err != nil {
			if err := t.fail(ctx, []*judge{j}, err); err != nil {
				return nil, nil, err
			}
			continue
		}
		judges = append(judges, j)
	}
	return judges, cohorts, nil
}

// evaluateTenant compares the look-back of a tenant, then evaluates its groups.
func (t *tick) evaluateTenant(ctx context.Context, tenant *group) error {
	if reaches := tenant.reaches(t.horizon.StartTimeNS); len(reaches) > 0 {
		q := FingerprintQuery{TenantID: tenant.tenantID, Statuses: tenant.statuses(), ToNS: t.horizon.StartTimeNS}
		if err := t.ledger.observe(ctx, t.Source, q, reaches); err != nil {
			return t.failAll(ctx, tenant, err)
		}
	}
	for _, g := range groups(partiesOf(tenant.judges, tenant.cohorts), byCursor) {
		if err := t.evaluate(ctx, &g); err != nil {
			return err
		}
	}
	return nil
}

// batch returns a batch with advances, to be filled.
//
// A rule of the least interval is judged by every tick, however short: it is due
// again a good part of a tick after the claim. So the next tick of this replica
// finds it due even when it comes early, and several replicas together do not
// judge it much more often than one.
func (t *tick) batch(advances []Advance) Batch {
	b := Batch{ClaimFor: t.ClaimFor, Patience: max(0, patience-t.Clock().Sub(t.readAt)), Advances: advances}
	if !t.claimed.IsZero() {
		b.LeastDueAt = t.claimed.Add(min(t.Interval, leastInterval) * 3 / 4)
	}
	return b
}

// patience is how far into a tick its commits may wait for room at a dispatcher: what
// comes after them in the tick, and the next tick, wait with them.
const patience = time.Second

// leastInterval is the least interval that a rule may have.
const leastInterval = time.Second

// failAll fails every rule of a group, which has none left then.
func (t *tick) failAll(ctx context.Context, g *group, problem error) error {
	judges, cohorts := g.judges, g.cohorts
	g.judges, g.cohorts = nil, nil
	for _, c := range cohorts {
		if err := t.failCohort(ctx, c, problem); err != nil {
			return err
		}
	}
	if len(judges) == 0 {
		return nil
	}
	return t.fail(ctx, judges, problem)
}
