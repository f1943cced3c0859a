package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Bounds of a [Traffic].
const (
	defaultInterval = 200 * time.Millisecond
	defaultKept     = 50_000 // rows kept while ClickHouse is away, about an hour of traffic
	batchRows       = 5_000
	backfillRows    = 20_000
	leap            = time.Minute // a clock that moves further at once has leapt
	insertTimeout   = 30 * time.Second
	longestPause    = 5 * time.Second // between two tries while ClickHouse is away
)

// Target is where exchanges go; [Table] is the one in ClickHouse.
type Target interface {
	Create(ctx context.Context) error
	Empty(ctx context.Context) (bool, error)
	Insert(ctx context.Context, rows []Row) error
}

// Options are the settings of [New].
type Options struct {
	// Target receives the rows. Required.
	Target Target
	// Seed chooses among the possible traffics.
	Seed uint64
	// Shape is how much traffic there is.
	Shape Shape
	// Interval is the time between two batches, 200 ms by default.
	Interval time.Duration
	// Kept is how many rows are kept while the target refuses them, 50,000 by
	// default.
	Kept int
	// Clock is the present, time.Now by default.
	Clock func() time.Time
	// Logger is required.
	Logger *slog.Logger
}

// Stats is what a [Traffic] has done since it was made.
type Stats struct {
	// Inserted counts rows that the target acknowledged, Failures those of them
	// that are failed exchanges.
	Inserted, Failures int64
	// Waiting is the number of rows that are due and not yet acknowledged.
	Waiting int
	// Dropped counts rows given up because too many were waiting.
	Dropped int64
}

// Traffic writes the exchanges of the demo company in real time.
type Traffic struct {
	opts    Options
	outages chan string

	mu    sync.Mutex
	stats Stats

	// What follows belongs to Run.
	generator *Generator
	last      time.Time
	waiting   []Row
	created   bool
	away      bool
	pause     time.Duration
	retryAt   time.Time
}

// New returns a traffic that has not begun.
func New(opts Options) (*Traffic, error) {
	if opts.Target == nil || opts.Logger == nil {
		return nil, errors.New("demo traffic: target and logger are required")
	}
	if opts.Interval <= 0 {
		opts.Interval = defaultInterval
	}
	if opts.Kept <= 0 {
		opts.Kept = defaultKept
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	return &Traffic{opts: opts, outages: make(chan string, 8)}, nil
}

// Stats returns the counts so far. It is safe for concurrent use.
func (t *Traffic) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stats
}

// Outage makes the route fail 20 to 40 times within the next seconds, any route
// if the id is empty. It takes effect while Run runs, and is safe for concurrent
// use.
func (t *Traffic) Outage(routeID string) error {
	if routeID != "" && !slices.Contains(Routes(), routeID) {
		return fmt.Errorf("no route %q in the demo catalog", routeID)
	}
	select {
	case t.outages <- routeID:
		return nil
	default:
		return errors.New("too many outages are waiting already")
	}
}

// Backfill writes the exchanges of the hours before now, if the table is empty,
// and returns how many rows it wrote. It ends before Run begins. An exchange that
// has not ended by now is left out, or stays RUNNING, as after a crash.
func (t *Traffic) Backfill(ctx context.Context, hours int) (int, error) {
	if err := t.opts.Target.Create(ctx); err != nil {
		return 0, err
	}
	empty, err := t.opts.Target.Empty(ctx)
	if err != nil || !empty {
		return 0, err
	}
	now := t.opts.Clock()
	g := NewGenerator(t.opts.Seed, now.Add(-time.Duration(hours)*time.Hour), t.opts.Shape)
	written := 0
	batch := make([]Row, 0, backfillRows)
	for more := true; more; {
		batch = batch[:0]
		for len(batch) < backfillRows && more {
			if more = !g.Peek().After(now); more {
				batch = append(batch, g.Next())
			}
		}
		if len(batch) == 0 {
			break
		}
		if err := t.opts.Target.Insert(ctx, batch); err != nil {
			return written, fmt.Errorf("backfill %d hours: %w", hours, err)
		}
		written += len(batch)
	}
	return written, nil
}

// Run writes what is due, batch by batch, until the context ends, and returns
// nil then. Some exchanges fail as soon as it begins. What is still waiting at the end is not written.
func (t *Traffic) Run(ctx context.Context) error {
	ticker := time.NewTicker(t.opts.Interval)
	defer ticker.Stop()
	for {
		t.Tick(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Tick is one pass of Run: it draws what is due by the clock and tries to insert
// it.
func (t *Traffic) Tick(ctx context.Context) {
	now := t.opts.Clock()
	t.draw(now)
	if now.Before(t.retryAt) {
		return
	}
	if err := t.flush(ctx); err != nil {
		if ctx.Err() != nil {
			return
		}
		t.pause = min(max(2*t.pause, t.opts.Interval), longestPause)
		t.retryAt = now.Add(t.pause)
		if !t.away {
			t.away = true
			t.opts.Logger.WarnContext(ctx, "ClickHouse does not accept demo exchanges; they wait", slog.Any("error", err))
		}
		return
	}
	t.pause, t.retryAt = 0, time.Time{}
	if t.away {
		t.away = false
		t.opts.Logger.InfoContext(ctx, "ClickHouse accepts demo exchanges again", slog.Int64("rows_dropped", t.Stats().Dropped))
	}
}

// draw adds the rows that became due to those that wait.
func (t *Traffic) draw(now time.Time) {
	if gap := now.Sub(t.last); t.generator == nil || gap > leap || gap < -leap {
		first := t.generator == nil
		t.generator = NewGenerator(t.opts.Seed, now, t.opts.Shape)
		if first {
			t.generator.open(now)
		}
	}
	t.last = now
	for asked := true; asked; {
		select {
		case id := <-t.outages:
			// The id was checked when the outage was asked for.
			_ = t.generator.Outage(id, now)
		default:
			asked = false
		}
	}
	t.waiting = append(t.waiting, t.generator.Until(now)...)
	dropped := max(0, len(t.waiting)-t.opts.Kept)
	t.waiting = t.waiting[dropped:]
	t.record(func(s *Stats) {
		s.Dropped += int64(dropped)
		s.Waiting = len(t.waiting)
	})
}

// flush inserts what waits, oldest first.
func (t *Traffic) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, insertTimeout)
	defer cancel()
	if !t.created {
		if err := t.opts.Target.Create(ctx); err != nil {
			return err
		}
		t.created = true
	}
	for len(t.waiting) > 0 {
		batch := t.waiting[:min(len(t.waiting), batchRows)]
		if err := t.opts.Target.Insert(ctx, batch); err != nil {
			// The table may be gone together with the server's data.
			t.created = false
			return err
		}
		failed := 0
		for _, r := range batch {
			if r.Status == StatusFailed && !r.Repeat {
				failed++
			}
		}
		t.waiting = t.waiting[len(batch):]
		t.record(func(s *Stats) {
			s.Inserted += int64(len(batch))
			s.Failures += int64(failed)
			s.Waiting = len(t.waiting)
		})
	}
	t.waiting = nil
	return nil
}

func (t *Traffic) record(change func(*Stats)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.stats)
}
