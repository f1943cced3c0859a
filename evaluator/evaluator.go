// Package evaluator evaluates exchanges by rules and raises alerts, each once.
//
// Progress is stored per partition. A partition is a share of the tenants. Its checkpoint is
// one row in Postgres that holds the lease, the fencing token and the cursor. Postgres is
// authoritative: what no commit wrote did not happen, and the next pass does the same work
// again.
//
//	hold ──▶ rules ──▶ observe ──▶ plan ──▶ ┌ read ──▶ evaluate ──▶ commit ┐ ──▶ the next range
//	                                         └──────────────────────────────┘
//
// A pass observes the clock of the source (see package source) and the fingerprints of recent seconds, and plans what
// to read (see package backlog). Each range goes through the same loop: read a page, evaluate
// it by every rule of the partition (see package ruleset), and commit the alerts together with
// the new progress.
// The order within a pass is:
//
//  1. exchanges that are new, or changed shortly before the watermark;
//  2. window rules (see package window), which come first after a pass that had no time for them;
//  3. in the rest of the interval: looks at the older look-back, the ranges that are left to
//     evaluate there, the rules that are exceptions (see exception.go), and replays, which people
//     asked for (see replay.go). If one of these uses up the time, the next pass begins with the
//     one after it, or with the same one if those before it had left it too little time.
//
// The guarantees, and what they rest on:
//
//   - No exchange is alerted twice. An alert is unique by rule and execution id in the
//     database, and its id is derived from both. Evaluating an exchange again changes nothing,
//     and an alert that a failover took away comes back with the same id.
//
//   - No exchange is skipped. The cursor moves only in a transaction that also writes what
//     was raised up to it, and the backfill mark: the start time from which exchanges behind
//     the cursor are left to evaluate. Pages end at positions, never within one.
//
//   - Late exchanges are found. An exchange that becomes visible behind the cursor changes
//     the fingerprint of its second or minute, which is then evaluated again (see package
//     backlog). This covers the look-back of the rules. A fingerprint counts as evaluated only
//     if the server that gave it also answered the scan: a server that lags may delay an
//     alert, but never hides one.
//
//   - A stale holder changes nothing. Each commit is a compare-and-set on the checkpoint's
//     token, revision and rules revision. Every change of a rule increases the rules
//     revision, so no commit uses rules that have changed.
//
//   - Memory is valid only for the revision that the process committed last. After another
//     holder, a failover that lost commits, or a restored backup, the process evaluates the
//     look-back again.
//
//   - No cursor follows a clock of the source that is more than a minute ahead of Postgres's.
//
//   - A source that cannot be read is announced once (see package outage). A rule that
//     cannot be evaluated is announced once and left out, and the others continue.
//
//   - A replay does not change what the rule raises by itself, nor the messages about it. It
//     never makes a rule fail, and a pass waits for at most one page of it.
//
//   - No exchange stops a partition. A rule that panics over one fails, like a rule of which the
//     database refuses an alert.
//
//   - No partition waits for another. Each pass has its own deadline, and a pass that panics
//     does not end the others. Within a pass, no tenant delays new exchanges of the others for
//     longer than its share.
package evaluator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"tocsin/evaluator/outage"
	"tocsin/evaluator/ruleset"
	"tocsin/evaluator/source"
	"tocsin/internal/fault"
	"tocsin/notify"
	"tocsin/rules"
)

// Publisher wakes dispatchers. What it loses, their polling finds.
type Publisher interface {
	Publish(ctx context.Context, w notify.WakeUp) error
}

// Texts renders the title and the message of an alert about an exchange. It always returns texts to show;
// where a template cannot be rendered it falls back and says why in problem.
type Texts interface {
	Texts(rule *rules.Rule, e *rules.Exchange) (title, message string, problem error)
}

// Observer is notified of what passes did. Its methods must not block, and may be called by
// several passes at once.
type Observer interface {
	Passed(partition int, result Result)
	// GaveUp is called when this replica does not hold a partition any more.
	GaveUp(partition int)
	Committed(t Timing)
}

// Timing is how long a commit took, and how long after the ends of their exchanges it
// raised its alerts, in nanoseconds.
type Timing struct {
	Commit     time.Duration
	DetectedNS []int64
}

// Result is what passes did.
type Result struct {
	// Partitions is the number of passes, Stale of those that another holder or a change
	// of the rules overtook.
	Partitions, Stale int
	// Observed says that the source was read, Resting that the partition has no rules.
	Observed, Resting bool
	// Scanned is the number of exchanges read.
	Scanned int
	// Alerts and Notifications were written; Late is how many of the alerts were found
	// behind the cursor, Suppressed how many more notifications silences suppress.
	Alerts, Notifications, Late, Suppressed int
	// Failed is the number of rules that began to fail, Deferred of tenants that took
	// more than their share.
	Failed, Deferred int
	// Took is the time of one pass. Lag is how far its cursor is behind the watermark
	// at its end, Backlog how much start time behind the cursor is left to evaluate, and
	// BacklogAge for how long something has been; all are measured by each pass that
	// observed, also by one that failed afterwards.
	Took, Lag, Backlog, BacklogAge time.Duration
}

func (r *Result) add(o Result) {
	r.Partitions, r.Stale, r.Scanned = r.Partitions+o.Partitions, r.Stale+o.Stale, r.Scanned+o.Scanned
	r.Alerts, r.Notifications, r.Late = r.Alerts+o.Alerts, r.Notifications+o.Notifications, r.Late+o.Late
	r.Suppressed += o.Suppressed
	r.Failed, r.Deferred, r.Observed, r.Resting = r.Failed+o.Failed, r.Deferred+o.Deferred, r.Observed || o.Observed, r.Resting || o.Resting
	r.Took, r.Lag, r.Backlog, r.BacklogAge = max(r.Took, o.Took), max(r.Lag, o.Lag), r.Backlog+o.Backlog, max(r.BacklogAge, o.BacklogAge)
}

// Options configures an [Evaluator]. Source, Store, Publisher, Texts, Logger, Clock and
// Replica are required.
type Options struct {
	Source    source.Source
	Store     Store
	Publisher Publisher
	Texts     Texts
	// Windows evaluates window rules; without it they are not evaluated.
	Windows Windows
	// Observer may be nil.
	Observer Observer
	// Begin may be nil. It is called when a pass begins, and returns the context of what
	// the pass does, and what is called at its end.
	Begin  func(ctx context.Context, partition int) (context.Context, func(Result, error))
	Logger *slog.Logger
	// Clock measures how long passes take; it is never compared with a lease.
	Clock func() time.Time
	// Replica names this process in leases.
	Replica string
	// Interval is the time between passes over a partition, 1 s by default.
	Interval time.Duration
	// Settle is how far the watermark lies behind the source's clock, 0 or more.
	Settle time.Duration
	// PageSize is the most exchanges read at once, 1,000 by default; of what is not
	// recent ten times as many.
	PageSize int
	// LeaseFor is how long a partition stays with a replica that does not commit, 15 s by
	// default. A pass reads for a third of it at the most.
	LeaseFor time.Duration
	// Workers is how many passes may be under way at once, [DefaultWorkers] by default.
	Workers int
}

// DefaultWorkers is how many passes may be under way at once by default.
const DefaultWorkers = 8

// Evaluator holds partitions and makes passes over them.
type Evaluator struct {
	Options
	// locked are the free partitions that cannot be taken. Only hold uses it.
	locked map[int]*locked
	// mu guards what follows, and whether each partition is busy.
	mu         sync.Mutex
	partitions map[int]*partition
	outage     *outage.Announcer
}

// New returns an evaluator. Its error names the option that cannot be used.
func New(o Options) (*Evaluator, error) {
	if o.Source == nil || o.Store == nil || o.Publisher == nil || o.Texts == nil || o.Logger == nil || o.Clock == nil || o.Replica == "" {
		return nil, errors.New("evaluator: Source, Store, Publisher, Texts, Logger, Clock and Replica are required")
	}
	if o.Interval < 0 || o.Settle < 0 || o.PageSize < 0 || o.LeaseFor < 0 || o.Workers < 0 {
		return nil, errors.New("evaluator: Interval, Settle, PageSize, LeaseFor and Workers must not be negative")
	}
	o.Interval, o.LeaseFor = cmp.Or(o.Interval, time.Second), cmp.Or(o.LeaseFor, 15*time.Second)
	o.PageSize, o.Workers = cmp.Or(o.PageSize, 1000), cmp.Or(o.Workers, DefaultWorkers)
	announcer := outage.New(outage.Options{Store: o.Store, Replica: o.Replica, Clock: o.Clock, Within: o.LeaseFor / 2, Logger: o.Logger})
	return &Evaluator{Options: o, partitions: map[int]*partition{}, locked: map[int]*locked{}, outage: announcer}, nil
}

// Tick makes one pass over each partition that this replica holds, and waits for all.
func (e *Evaluator) Tick(stop context.Context) (Result, error) {
	due, err := e.hold(stop)
	if err != nil {
		return Result{}, err
	}
	var all Result
	var errs []error
	var mu sync.Mutex
	var passes sync.WaitGroup
	slots := make(chan struct{}, e.Workers)
	for _, p := range due {
		slots <- struct{}{} // with one worker, one partition after the other
		passes.Go(func() {
			defer func() { <-slots }()
			result, err := e.pass(stop, p)
			mu.Lock()
			defer mu.Unlock()
			all.add(result)
			errs = append(errs, err)
		})
	}
	passes.Wait()
	return all, errors.Join(errs...)
}

// Run makes passes until ctx ends: over each partition every interval, unless the one
// before is still under way. Then it gives up what it holds, so that another replica goes
// on at once: first what no pass is under way over, and the rest when each has committed
// the page at hand.
func (e *Evaluator) Run(ctx context.Context) {
	ticker := time.NewTicker(e.Interval)
	defer ticker.Stop()
	slots := make(chan struct{}, e.Workers)
	var passes sync.WaitGroup
	defer passes.Wait()
	for ctx.Err() == nil {
		due, err := e.hold(ctx)
		if err != nil && ctx.Err() == nil {
			e.Logger.ErrorContext(ctx, "partitions not leased; it is retried: run tocsin doctor if this repeats", slog.Any("error", err))
		}
		for _, p := range due {
			passes.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				if _, err := e.pass(ctx, p); err != nil && !errors.Is(err, ErrStale) {
					e.Logger.ErrorContext(ctx, "pass failed; the next one does the same work: run tocsin doctor if this repeats", slog.Int("partition", p.number), slog.Any("error", err), fault.Stack(err))
				}
			})
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	e.release(ctx)
	passes.Wait()
	e.release(ctx)
}

// hold renews and takes leases, and returns the partitions that a pass may be made over,
// marked as busy.
func (e *Evaluator) hold(ctx context.Context) ([]*partition, error) {
	var busy []int
	e.mu.Lock()
	for number, p := range e.partitions {
		if p.busy {
			busy = append(busy, number)
		}
	}
	e.mu.Unlock()
	slices.Sort(busy)
	ctx, cancel := context.WithTimeout(ctx, e.LeaseFor/2)
	defer cancel()
	holding, err := e.Store.Hold(ctx, HoldRequest{Replica: e.Replica, LeaseFor: e.LeaseFor, Busy: busy})
	if err != nil {
		return nil, fmt.Errorf("hold partitions: %w", err)
	}
	e.outage.Announced(holding.SourceFailed)
	e.logLocked(ctx, holding.Locked)
	e.mu.Lock()
	defer e.mu.Unlock()
	var due []*partition
	held := map[int]bool{}
	for _, c := range holding.Checkpoints {
		held[c.Partition] = true
		if slices.Contains(busy, c.Partition) {
			continue
		}
		p := e.partitions[c.Partition]
		if p == nil {
			p = &partition{Evaluator: e, number: c.Partition, pageSize: e.PageSize, at: c}
			e.partitions[c.Partition] = p
		}
		p.adopt(c, holding.Now)
		due = append(due, p)
	}
	for number, p := range e.partitions {
		if !held[number] && !p.busy {
			delete(e.partitions, number)
			e.outage.GaveUp(number)
			if e.Observer != nil {
				e.Observer.GaveUp(number)
			}
		}
	}
	for _, p := range due {
		p.busy = true // last: what panics before leaves no partition busy without a pass
	}
	return due, nil
}

// locked records since when a free partition has been locked, when it was last seen so, and when the log last said so.
type locked struct{ since, seenAt, saidAt time.Time }

// logLocked logs the free partitions that this replica has been unable to take for as long as a lease, or for a minute if
// that is shorter. Shorter locks are commits or other replicas. If nobody looked for a while, the time starts again.
func (e *Evaluator) logLocked(ctx context.Context, list []int) {
	maps.DeleteFunc(e.locked, func(number int, _ *locked) bool { return !slices.Contains(list, number) })
	now, gap := e.Clock(), e.LeaseFor/2+2*e.Interval
	for _, number := range list {
		l := e.locked[number]
		if l == nil || now.Sub(l.seenAt) > gap {
			l = &locked{since: now}
			e.locked[number] = l
		}
		l.seenAt = now
		if waited := now.Sub(l.since); waited >= min(e.LeaseFor, time.Minute) && now.Sub(l.saidAt) >= saysEvery {
			l.saidAt = now
			e.Logger.WarnContext(ctx, "free partition not taken, because another session of Postgres has locked its row, so no replica evaluates it; it is retried: "+
				"find the session (select distinct pid, xact_start, application_name, query from pg_stat_activity join pg_locks using (pid) "+
				"where datname = current_database() and relation = 'checkpoint'::regclass and mode <> 'AccessShareLock' order by 2; commits of Tocsin are among them) "+
				"and end it with pg_terminate_backend(pid)",
				slog.Int("partition", number), slog.Duration("waited", waited))
		}
	}
}

// pass makes one pass, unless the process ends. If what is done around the pass panics, only this one has failed.
func (e *Evaluator) pass(ctx context.Context, p *partition) (result Result, err error) {
	defer e.idle(p)
	if ctx.Err() != nil {
		return result, nil
	}
	err = fault.Guard(func() (err error) { result, err = e.observed(ctx, p); return err })
	return result, err
}

// observed makes one pass, and notes what it says about the source.
func (e *Evaluator) observed(ctx context.Context, p *partition) (result Result, err error) {
	if e.Begin != nil {
		begun, end := e.Begin(ctx, p.number)
		ctx = begun
		defer func() { end(result, err) }()
	}
	result, err = p.run(ctx)
	var failed sourceError
	switch {
	case errors.As(err, &failed):
		result.Notifications += e.outage.Failed(ctx, p.number, ruleset.ProblemOf(failed.Error()))
	case result.Observed || err == nil && result.Resting:
		result.Notifications += e.outage.Works(ctx, p.number, result.Observed)
	}
	if e.Observer != nil {
		e.Observer.Passed(p.number, result)
	}
	if result.Alerts > 0 || result.Failed > 0 || result.Deferred > 0 {
		e.Logger.InfoContext(ctx, "pass done", slog.Int("partition", p.number), slog.Int("scanned", result.Scanned),
			slog.Int("alerts", result.Alerts), slog.Int("late", result.Late), slog.Int("notifications", result.Notifications), slog.Int("suppressed", result.Suppressed),
			slog.Int("failed", result.Failed), slog.Int("deferred", result.Deferred), slog.Duration("took", result.Took))
	}
	return result, err
}

// idle says that no pass is under way over a partition any more.
func (e *Evaluator) idle(p *partition) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p.busy = false
}

// release gives up every partition over which no pass is under way.
func (e *Evaluator) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.LeaseFor/2)
	defer cancel()
	e.mu.Lock()
	var held []int
	for number, p := range e.partitions {
		if !p.busy {
			held = append(held, number)
			delete(e.partitions, number)
		}
	}
	e.mu.Unlock()
	slices.Sort(held)
	if err := e.Store.Release(ctx, e.Replica, held); err != nil {
		e.Logger.WarnContext(ctx, "partitions not released; other replicas take them over when their leases expire", slog.Any("error", err))
	}
}
