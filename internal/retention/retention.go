// Package retention deletes what is no longer needed, in small steps, while
// everything else goes on.
//
// Postgres is authoritative, and only its clock says how old something is. Three things grow for
// ever and are deleted. The first two are the contents of messages:
//
//   - Bodies whose retention is over, unless their message is still open. They are partitioned by
//     when they were written: partitions are made ahead, and dropped as a whole. A body without a
//     partition (none was made in time, or a clock has jumped), and a body of a message that is
//     open when its partition is dropped, is kept in a separate table and deleted row by row.
//   - Responses to messages that were settled long enough ago, with their heads. The rest of an
//     attempt stays, and says when it was made and what came of it.
//   - Alerts that were resolved long enough ago, with their notifications and attempts. Open things
//     stay, however old: an alert that is not resolved, an alert with a message that still waits,
//     an alert about a rule that still fails.
//
// An alert is also the only thing that keeps its exchange from being alerted a second time. Two
// rules protect this. First, an alert is deleted only if its exchange began before everything that
// its rule can still read: before the cursor by more than both the retention and the look-back.
// Second, each rule has a retention floor, the start time before which it raises nothing any more.
// The floor is raised and committed before the first such alert is deleted, and the commit of an
// evaluation obeys it, whatever settings, edits or clocks say by then.
//
//	candidates ──▶ floors raised, committed ──▶ alerts deleted
//
// A crash between two batches does no harm, and a crash within a batch rolls the batch back. After
// a crash between raising and deleting, some alerts stay until the next pass, and their rule
// already ignores that time. One replica deletes at a time. It holds the lock for one batch only, so
// that it can pause or die without keeping the others out. A row that cannot be deleted is skipped
// and reported.
package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
)

// Defaults and bounds of the retention.
const (
	DefaultAlerts   = 90 * day
	DefaultContents = 30 * day
	// Least and Most bound both times.
	Least = day
	Most  = 3650 * day

	day = 24 * time.Hour
)

// Keep is how long data is kept after its end.
type Keep struct {
	// Alerts counts from when an alert was resolved. Contents counts from when a message was settled
	// and, for its body, from when that was written.
	Alerts, Contents time.Duration
}

// Width is the width of the partitions of bodies: a tenth of their retention, in whole days, and at
// most a month. A body is kept for up to that much longer.
func (k Keep) Width() time.Duration {
	return min(max((k.Contents/10).Truncate(day), day), 30*day)
}

// Validate returns an error if the retention makes no sense.
func (k Keep) Validate() error {
	switch {
	case k.Alerts < Least || k.Alerts > Most:
		return fmt.Errorf("the retention of alerts is %v; it must be from 1d to 3650d", k.Alerts)
	case k.Contents < Least || k.Contents > k.Alerts:
		return fmt.Errorf("the retention of the contents of messages is %v; it must be from 1d to the retention of alerts, %v", k.Contents, k.Alerts)
	}
	return nil
}

// ErrBusy says that another replica is deleting just now.
var ErrBusy = errors.New("another replica is deleting")

// Mark is a place among the resolved alerts, ordered by (resolution, id). The zero mark is the
// beginning.
type Mark struct {
	ResolvedAt time.Time
	AlertID    uuid.UUID
}

// Batch asks for a step through the resolved alerts.
type Batch struct {
	Keep  time.Duration
	After Mark
	// Most is how many alerts to look at.
	Most int
}

// BatchResult is the result of a batch.
type BatchResult struct {
	// Looked is the number of alerts looked at, Deleted how many of them were deleted.
	Looked, Deleted int
	// Next is where the next batch begins. It is set even if there is an error.
	Next Mark
}

// Store deletes. Every method returns [ErrBusy] when another replica is deleting,
// and holds its locks no longer than some seconds.
type Store interface {
	// Bodies creates the partitions that bodies will soon be written to, drops one that has
	// expired, and deletes old bodies that are in no partition. It reports whether there may be
	// more to do.
	Bodies(ctx context.Context, keep, width time.Duration, most int) (more bool, err error)
	// Responses deletes the responses to the messages that were settled first, and returns to how many.
	Responses(ctx context.Context, keep time.Duration, most int) (int, error)
	// Alerts deletes the alerts of a batch that are not needed any more.
	Alerts(ctx context.Context, batch Batch) (BatchResult, error)
	// Done deletes digests without alerts, and stores the end of a pass.
	Done(ctx context.Context, keep time.Duration) error
}

// Observer is notified of what was deleted, batch by batch.
type Observer interface {
	RetentionDeleted(alerts, contents int)
	// RetentionFailed counts a batch that could not be deleted.
	RetentionFailed()
}

// Options configure a [Deleter]. All fields except Interval are required.
type Options struct {
	Store    Store
	Observer Observer
	Logger   *slog.Logger
	// Clock measures how long a batch takes. No age is compared with it.
	Clock func() time.Time
	Keep  Keep
	// Interval is the time between passes, 1 min by default.
	Interval time.Duration
}

// Deleter deletes expired data, in passes.
type Deleter struct{ Options }

// New returns a deleter. Its error names the option that is invalid.
func New(o Options) (*Deleter, error) {
	if o.Store == nil || o.Observer == nil || o.Logger == nil || o.Clock == nil {
		return nil, errors.New("retention: Store, Observer, Logger and Clock are required")
	}
	if o.Interval == 0 {
		o.Interval = time.Minute
	}
	if o.Interval < 0 {
		return nil, errors.New("retention: the interval must be positive")
	}
	if err := o.Keep.Validate(); err != nil {
		return nil, err
	}
	return &Deleter{o}, nil
}

// Result is what a pass deleted: alerts, and the contents of messages.
type Result struct{ Alerts, Contents int }

// Run makes passes until ctx ends.
func (d *Deleter) Run(ctx context.Context) {
	ticker := time.NewTicker(d.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		result, err := d.Pass(ctx)
		switch {
		case ctx.Err() != nil || errors.Is(err, ErrBusy):
		case err != nil:
			d.Logger.WarnContext(ctx, "not all expired data deleted; the next pass deletes the rest: run tocsin doctor if this repeats", slog.Any("error", err))
		}
		if result != (Result{}) {
			d.Logger.InfoContext(ctx, "expired data deleted", slog.Int("alerts", result.Alerts), slog.Int("contents", result.Contents))
		}
	}
}

// Pass deletes everything that is old enough, batch by batch. After each batch it pauses for as long
// as the batch took. What cannot be deleted does not keep the rest from being deleted. If Pass returns an
// error, it still returns what it did.
func (d *Deleter) Pass(ctx context.Context) (result Result, err error) {
	bodies := d.bodies(ctx)
	if errors.Is(bodies, ErrBusy) {
		return result, bodies
	}
	var responses error
	if result.Contents, responses = d.responses(ctx); responses != nil {
		responses = fmt.Errorf("delete responses: %w", responses)
		if final(ctx, responses) {
			return result, errors.Join(bodies, responses)
		}
	}
	if result.Alerts, err = d.alerts(ctx); err != nil {
		return result, errors.Join(bodies, responses, fmt.Errorf("delete alerts: %w", err))
	}
	if responses != nil {
		return result, errors.Join(bodies, responses)
	}
	if err := d.Store.Done(ctx, d.Keep.Alerts); err != nil {
		d.failed(ctx, err)
		return result, errors.Join(bodies, fmt.Errorf("note the end of a pass: %w", err))
	}
	return result, bodies
}

// bodies deletes bodies. If a partition is in use for too long, the next pass drops it.
func (d *Deleter) bodies(ctx context.Context) error {
	for more := true; more; {
		began := d.Clock()
		var err error
		if more, err = d.Store.Bodies(ctx, d.Keep.Contents, d.Keep.Width(), maxBatch); err != nil {
			d.failed(ctx, err)
			return fmt.Errorf("delete bodies: %w", err)
		}
		if more {
			p := pace{size: maxBatch}
			if err := p.rest(ctx, d.Clock().Sub(began), false); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *Deleter) responses(ctx context.Context) (total int, err error) {
	for p := (pace{size: firstBatch}); ; {
		began := d.Clock()
		most := p.size
		n, err := d.Store.Responses(ctx, d.Keep.Contents, most)
		total += n
		d.Observer.RetentionDeleted(0, n)
		if err != nil && (p.size == 1 || final(ctx, err)) {
			d.failed(ctx, err)
			return total, err
		}
		if err == nil && n < most {
			return total, nil
		}
		if err := p.rest(ctx, d.Clock().Sub(began), err != nil); err != nil {
			return total, err
		}
	}
}

func (d *Deleter) alerts(ctx context.Context) (total int, err error) {
	var after Mark
	var passed error
	for p := (pace{size: firstBatch}); ; {
		began := d.Clock()
		most := p.size
		done, err := d.Store.Alerts(ctx, Batch{Keep: d.Keep.Alerts, After: after, Most: most})
		total += done.Deleted
		d.Observer.RetentionDeleted(done.Deleted, 0)
		switch {
		case err == nil:
			after = done.Next
			if done.Looked < most {
				return total, passed
			}
		case final(ctx, err) || done.Next == (Mark{}):
			d.failed(ctx, err)
			return total, err
		case most == 1:
			// This row stays; the others must not wait for it.
			d.failed(ctx, err)
			passed = fmt.Errorf("alert %s: %w", done.Next.AlertID, err)
			after = done.Next
		}
		if err := p.rest(ctx, d.Clock().Sub(began), err != nil); err != nil {
			return total, err
		}
	}
}

func final(ctx context.Context, err error) bool { return ctx.Err() != nil || errors.Is(err, ErrBusy) }

func (d *Deleter) failed(ctx context.Context, err error) {
	if !final(ctx, err) {
		d.Observer.RetentionFailed()
	}
}

// pace finds the size of batches that neither hold locks for long nor waste time.
type pace struct{ size int }

const (
	firstBatch = 200
	maxBatch   = 2000
	// quick and slow bound the time of a batch with the right size.
	quick = 100 * time.Millisecond
	slow  = 400 * time.Millisecond
	// maxRest bounds the pause after a batch.
	maxRest = 2 * time.Second
)

// rest adapts the size to the time of the last batch, and pauses.
func (p *pace) rest(ctx context.Context, took time.Duration, failed bool) error {
	switch {
	case failed || took > slow:
		p.size = max(p.size/2, 1)
	case took < quick:
		p.size = min(p.size*2, maxBatch)
	}
	timer := time.NewTimer(min(took, maxRest))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// marginNS is added to the reach of a rule, because clocks may differ.
const marginNS = int64(time.Hour)

// ReachNS returns the start time before which a rule reads nothing any more. atNS is its position:
// its cursor or, before the first run, its arming.
func ReachNS(atNS int64, lookBack, keep time.Duration) int64 {
	return atNS - max(lookBack, keep).Nanoseconds() - marginNS
}

// CheckLookBack reports whether a rule may look back this far: it must be less than alerts are
// kept.
func (k Keep) CheckLookBack(lookBack time.Duration) bool { return lookBack < k.Alerts }
