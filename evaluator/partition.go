package evaluator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator/backlog"
	"tocsin/evaluator/retry"
	"tocsin/evaluator/ruleset"
	"tocsin/evaluator/source"
	"tocsin/internal/fault"
	"tocsin/rules"
)

// partition is a partition that this process holds. One pass at a time uses it.
type partition struct {
	*Evaluator
	number int
	// at is the checkpoint as this process knows it.
	at Checkpoint
	// heldAt is the present by the store's clock when the lease was last confirmed,
	// adoptedAt the same by the clock of this process.
	heldAt, adoptedAt time.Time
	rules             *ruleset.Set
	// backlog is nil where nothing is remembered; it counts exchanges of some statuses.
	backlog *backlog.Backlog
	counted []rules.Status
	// pageSize is how many exchanges a scan asks for; less while they are too large, or the
	// database takes too long to commit as many alerts.
	pageSize int
	busy     bool
	// pending is written by the next commit, whatever else it writes.
	pending ruleset.Pending
	// reload says that backfills may not be what this process remembers. confirmed is the
	// rules revision of the last commit: rules of another one may be of a change that a
	// failover took away.
	reload    bool
	confirmed int64
	// watermarkNS is the last watermark, observedAt when it was observed by the clock of
	// this process.
	watermarkNS int64
	observedAt  time.Time
	// clockAt is when the source's clock was last read for a partition without rules.
	clockAt time.Time
	// windowsMissed says that the last pass had no time for any window rule that was due.
	windowsMissed bool
	// caughtUp is the tenant of the rule that was furthest behind of those that were read for
	// last.
	caughtUp string
	// replayed is the rule whose replay was read last.
	replayed uuid.UUID
	// replays pause after a page for which the source needed longer than an interval.
	replays retry.Backoff
	// counting is when the rows of the look-back are counted again, if they could not be.
	counting retry.Backoff
	// olderFrom is the part of [pass.older] with which the next pass begins.
	olderFrom int
	// saidAt is when the log said something last.
	saidAt map[string]time.Time
}

// adopt takes over a checkpoint that was read. The backlog of another revision is dropped:
// somebody else has evaluated meanwhile, or a failover took commits away.
func (p *partition) adopt(c Checkpoint, now time.Time) {
	if c.Token != p.at.Token || c.Revision != p.at.Revision || c.RulesRevision < p.at.RulesRevision {
		p.forget()
	}
	p.at, p.heldAt, p.adoptedAt = c, now, p.Clock()
}

// forget drops what is remembered: the next pass reads the rules, and evaluates the look-back again. What
// confirmed the rules may be lost as well, and more may be lost before the next commit.
func (p *partition) forget() {
	p.backlog, p.rules, p.pending, p.confirmed = nil, nil, ruleset.Pending{}, 0
}

// sourceError says that the source could not be read, or not from where the partition
// stands.
type sourceError struct{ error }

func (e sourceError) Unwrap() error { return e.error }

// pass is one pass over a partition.
type pass struct {
	*partition
	began, deadline time.Time
	// stopping reports that the process ends.
	stopping func() bool
	result   Result
	// recentFromNS is where that begins which every pass compares, forwardNS what lies
	// after the cursor. The pass reads up to the watermark.
	recentFromNS, forwardNS int64
	server                  string
	// spent says that the time of the pass went into what was put off. cut says that other parts of [pass.older]
	// left the present one less time than a query may take: that it fails does not mean that it asks too much.
	spent, cut bool
}

// most is how long a pass may take.
func (p *partition) most() time.Duration { return p.LeaseFor * 2 / 3 }

// run makes one pass. An error of the source is returned as [sourceError]. A pass that panics,
// as over an exchange that nobody expected, has failed, and nothing that it left is trusted.
func (p *partition) run(stop context.Context) (result Result, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(stop), p.most())
	defer cancel()
	began := p.Clock()
	s := &pass{partition: p, began: began, deadline: began.Add(p.LeaseFor / 3), stopping: func() bool { return stop.Err() != nil }, result: Result{Partitions: 1}}
	if err = fault.Guard(func() error { return s.run(ctx) }); fault.Panicked(err) {
		p.forget()
	}
	s.result.Took = p.Clock().Sub(began)
	return s.result, err
}

// run is the pass: observe, evaluate what is recent and new, then window rules, then with
// what is left of the interval the older look-back, the rules that are behind, and replays. After a
// pass that had no time for window rules they come first, in every other pass at most.
func (p *pass) run(ctx context.Context) error {
	if p.at.Err != nil {
		return sourceError{fmt.Errorf("partition %d: %w", p.number, p.at.Err)}
	}
	if err := p.loadRules(ctx); err != nil {
		return err
	}
	if p.rules.Empty() {
		return p.rest(ctx)
	}
	recent, err := p.observe(ctx)
	if errors.Is(err, errStoodStill) {
		if waited := p.Clock().Sub(p.adoptedAt); p.says(err.Error()) {
			p.Logger.WarnContext(ctx, "pass given up, because it began long after the lease was confirmed; the process was paused, or has too few workers for its partitions: "+
				"give it more processor time, raise TOCSIN_EVALUATE_WORKERS, or add a replica", slog.Int("partition", p.number), slog.Duration("waited", waited))
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer p.measure()
	defer p.skipLooks()
	windowsFirst := p.windowsMissed
	// Until one of them is evaluated.
	p.windowsMissed = !windowsFirst && len(p.rules.Due(p.watermarkNS, p.Interval/4, p.Clock())) > 0
	// Window rules were not evaluated, because the source could not be read.
	var unevaluated sourceError
	if windowsFirst {
		if err := p.evaluateWindows(ctx, true); err != nil && !errors.As(err, &unevaluated) {
			return err
		}
	}
	for _, s := range recent {
		if _, err := p.read(ctx, s); err != nil {
			return err
		}
	}
	if p.stopping() {
		return nil
	}
	if err := p.evaluateWindows(ctx, false); err != nil && !errors.As(err, &unevaluated) {
		return err
	}
	err = p.older(ctx)
	if err == nil && !p.pending.Empty() {
		err = p.commit(ctx, findings{}, p.stay())
	}
	if unevaluated.error != nil {
		return errors.Join(unevaluated, err)
	}
	return err
}

// older does what can wait, in what is left of the interval. Each part does something at
// the least, unless another one has failed, or used up the time for nothing: then the next
// pass begins with the part after that. It begins with the same part if others had left it too little time.
func (p *pass) older(ctx context.Context) error {
	look := func(ctx context.Context) error { p.lookOlder(ctx); return nil }
	parts := []func(context.Context) error{look, p.readOlder, p.catchUp, p.replay}
	first := p.olderFrom
	p.olderFrom = 0
	for i := range parts {
		part := (first + i) % len(parts)
		if p.stopping() {
			return nil
		}
		p.cut = i > 0 && p.Clock().Add(p.queryTimeout()).After(p.began.Add(p.most()))
		if err := parts[part](ctx); err != nil {
			p.olderFrom = part + 1 // it may fail each time
			return err
		}
		if p.spent {
			if p.olderFrom = part; !p.cut {
				p.olderFrom++
			}
			return nil
		}
	}
	return nil
}

// skipLooks notes which looks at the older look-back the pass did not take.
func (p *pass) skipLooks() {
	if len(p.rules.Extent.Statuses) == 0 {
		p.backlog.SkipAll()
		return
	}
	p.backlog.Skip(p.recentFromNS, p.watermarkNS)
}

// measure notes how far the pass has come, whatever ended it.
func (p *pass) measure() {
	p.result.Lag = time.Duration(max(0, p.watermarkNS-p.cursorNS()))
	p.result.Backlog = time.Duration(p.backlog.LengthNS())
	p.result.BacklogAge = time.Duration(p.backlog.AgeNS(p.watermarkNS))
}

// over reports whether the pass should leave the rest to the next one.
func (p *pass) over() bool { return p.ending() || !p.Clock().Before(p.began.Add(p.Interval)) }

// ending reports whether the pass has to end with the page at hand.
func (p *pass) ending() bool { return p.stopping() || !p.Clock().Before(p.deadline) }

func (p *pass) cursorNS() int64 { return p.at.Cursor.StartTimeNS }

// loadRules reads the rules that changed since they were last read.
func (p *pass) loadRules(ctx context.Context) error {
	if p.rules != nil && p.rules.Revision == p.at.RulesRevision && p.confirmed == p.at.RulesRevision && !p.reload {
		return nil
	}
	if p.rules != nil && p.rules.Revision != p.confirmed {
		p.rules = nil
	}
	after := int64(0)
	if p.rules != nil {
		after = p.rules.Revision
	}
	changed, err := p.Store.Rules(ctx, p.number, after)
	if err != nil {
		return fmt.Errorf("read rules: %w", err)
	}
	if p.rules == nil {
		p.rules = ruleset.New()
	}
	unusable := p.rules.Apply(changed)
	p.pending = ruleset.Pending{} // what it says about rules is of their former states
	if p.backlog != nil && !slices.Equal(p.counted, p.rules.Extent.Statuses) {
		p.backlog = nil // what was remembered counts exchanges of other statuses
	}
	p.at.RulesRevision, p.reload = changed.Revision, false
	for id, why := range unusable {
		p.fail(p.rules.Rule(id), why, nil)
	}
	return nil
}

// clockEvery is how often the source's clock is read for a partition without rules, and
// clockWithin by how much it may differ from what is stored.
const clockEvery, clockWithin = time.Minute, 100 * time.Millisecond

// rest gives up the cursor of a partition without rules: the next rule starts again, by the
// source's clock.
func (p *pass) rest(ctx context.Context) error {
	p.backlog, p.result.Resting = nil, true
	stored := p.at.ClockOffset
	if p.clockAt.IsZero() || p.Clock().Sub(p.clockAt) >= clockEvery {
		reading, cancel := context.WithTimeout(ctx, p.queryTimeout())
		defer cancel()
		seen, err := p.Source.Observe(reading, source.ObserveQuery{FromNS: 1, ToNS: 1})
		if err != nil {
			p.putOff(ctx, "read the clock", err)
		}
		if err != nil || p.clockRead(seen.NowNS) {
			p.clockAt = p.Clock()
		}
	}
	if p.at.Cursor == nil && p.pending.Empty() && p.confirmed == p.rules.Revision && (p.at.ClockOffset-stored).Abs() < clockWithin {
		return nil
	}
	return p.commit(ctx, findings{}, step{})
}

// clockRead notes what the source's clock showed just now. The store's clock was read some
// moments before: where the process was paused between them, the former measure is the
// better one, and nothing is taken.
func (p *pass) clockRead(ns int64) (taken bool) {
	if p.Clock().Sub(p.adoptedAt) >= time.Second {
		return false
	}
	p.at.ClockOffset = time.Unix(0, ns).Sub(p.heldAt)
	return true
}
