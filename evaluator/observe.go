package evaluator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"tocsin/cursor"
	"tocsin/evaluator/backlog"
	"tocsin/evaluator/source"
)

const (
	secondNS = int64(time.Second)
	minuteNS = 60 * secondNS
	hourNS   = 60 * minuteNS
)

// mostAhead is how far beyond the store's clock a watermark may lie. Clocks that are kept
// in step differ by milliseconds, and what begins within a minute behind a cursor is
// compared by every pass.
const mostAhead = time.Minute

// errStoodStill says that the process was paused since its lease was confirmed: the next
// pass knows the time better.
var errStoodStill = errors.New("the process was paused")

// observe reads the source's clock and the fingerprints of what is recent, and returns
// what to read first.
func (p *pass) observe(ctx context.Context) ([]backlog.Stretch, error) {
	seen, fromNS, err := p.observeRecent(ctx)
	if err != nil {
		return nil, sourceError{err}
	}
	p.server = seen.Server
	p.clockRead(seen.NowNS)
	if ahead := time.Duration(p.watermarkNS - p.heldAt.UnixNano()); ahead > mostAhead {
		if p.Clock().Sub(p.adoptedAt) > ahead-mostAhead {
			return nil, errStoodStill
		}
		return nil, sourceError{fmt.Errorf("ClickHouse's clock is %v ahead of Postgres's, so nothing is evaluated: the cursor would pass exchanges that start meanwhile; "+
			"correct the wrong clock", ahead.Round(time.Minute))}
	}
	p.result.Observed, p.recentFromNS = true, fromNS
	p.begin()
	p.backlog.Advance(p.watermarkNS)
	p.forwardNS = min(max(p.splitNS(), p.recentFromNS), max(p.watermarkNS, p.recentFromNS))
	p.backlog.Observe(seen.Server, seen.Fingerprints, p.recentFromNS, p.forwardNS, p.watermarkNS)
	return p.backlog.Recent(p.server, p.recentFromNS, p.forwardNS, p.watermarkNS), nil
}

// observeRecent reads the source's clock, and the fingerprints from about two minutes
// before it on. Where it does not know the clock well enough, it asks for that first.
//
// The clock of the server that answers may be behind that of the server before. Then the question began too late, and is asked
// again from there on. An answer that begins too early is cut: a server whose clock is later may have given it.
func (p *pass) observeRecent(ctx context.Context) (seen source.Observation, fromNS int64, err error) {
	estimate := p.watermarkNS + p.Clock().Sub(p.observedAt).Nanoseconds()
	q := source.ObserveQuery{Tenants: p.tenants(), Statuses: p.rules.Extent.Statuses, SettleNS: p.Settle.Nanoseconds(), WidthNS: secondNS}
	var behind time.Duration
	for range 3 {
		q.FromNS = backlog.RecentFromNS(estimate)
		if p.at.Cursor != nil {
			q.SplitNS = p.splitNS()
		}
		known := !p.observedAt.IsZero()
		if !known || len(q.Statuses) == 0 {
			q.FromNS, q.ToNS = 1, 1 // the clock alone
		} else {
			q.ToNS = 0
		}
		if seen, err = p.Source.Observe(ctx, q); err != nil {
			return seen, 0, fmt.Errorf("observe: %w", err)
		}
		p.watermarkNS, p.observedAt = seen.NowNS-q.SettleNS, p.Clock()
		if behind = time.Duration(estimate - p.watermarkNS); known && behind > mostAhead && p.says("clocks") {
			p.Logger.WarnContext(ctx, "a ClickHouse server's clock is behind that of another, or was set back, so alerts may be late: synchronize the clocks of all ClickHouse servers, for example by NTP",
				slog.Int("partition", p.number), slog.String("server", seen.Server), slog.Duration("behind", behind))
		}
		estimate = p.watermarkNS
		recentNS := backlog.RecentFromNS(p.watermarkNS)
		if len(q.Statuses) == 0 || q.ToNS == 0 && q.FromNS <= recentNS {
			fromNS = max(min(q.FromNS, recentNS), recentNS-minuteNS)
			seen.Fingerprints = slices.DeleteFunc(seen.Fingerprints, func(f source.Fingerprint) bool { return f.FromNS < fromNS })
			return seen, fromNS, nil
		}
	}
	return seen, 0, fmt.Errorf("the clocks of the ClickHouse servers that answered in turn differ, each being behind the one before, the last by %v: "+
		"synchronize them, for example by NTP", behind.Round(time.Second))
}

// tenants names whose exchanges the partition observes.
func (p *pass) tenants() source.Tenants {
	t := source.Tenants{Names: p.rules.Extent.Tenants, Index: p.at.Index, Of: p.at.Of}
	if len(t.Names) == 0 {
		t.Names = p.rules.WindowTenants
	}
	return t
}

// splitNS returns the start time from which on nothing was passed by the cursor. Where
// the cursor is at an exchange, others of the same instant may lie before it.
func (p *pass) splitNS() int64 {
	if p.at.Cursor.ExecutionID != "" {
		return p.at.Cursor.StartTimeNS + 1
	}
	return p.at.Cursor.StartTimeNS
}

// pauseNS is how far apart the watermarks of two passes may be for [backlog.WaitNS] to hold. After
// a longer pause the whole look-back is looked at again before the mark is cleared.
const pauseNS = 5 * secondNS

// begin brings cursor and backlog in line with the watermark, before anything is read.
//
// A cursor that lies before what every pass compares goes forward to there at once: what
// it passes is put into the backlog, so that what is new waits for no outage to be caught
// up with. The commit that moves it stores that as the backfill mark.
func (p *pass) begin() {
	watermark := cursor.Position{StartTimeNS: p.watermarkNS}
	if p.at.Cursor == nil || p.at.Cursor.StartTimeNS > p.watermarkNS+mostAhead.Nanoseconds() {
		// There is none, or it was stored by a clock that was ahead.
		p.at.Cursor, p.backlog = &watermark, nil
	}
	at := *p.at.Cursor
	from := min(at.StartTimeNS, p.watermarkNS)
	if p.backlog == nil {
		p.backlog, p.counted = backlog.New(from, p.rules.ReachNS, p.at.Backfill), p.rules.Extent.Statuses
		p.backlog.LookAt(cursor.Range{FromNS: p.backlog.FromNS(), ToNS: p.recentFromNS})
	} else {
		p.backlog.LookBack(from, p.rules.ReachNS)
	}
	if p.watermarkNS-at.StartTimeNS > pauseNS {
		p.backlog.LookAt(cursor.Range{FromNS: min(p.backlog.FromNS(), at.StartTimeNS), ToNS: p.recentFromNS})
	}
	for _, r := range p.rules.Exceptions {
		if b := r.Backfill; b.Until == nil && !r.Failing {
			b.Until = &at // from here on the partition evaluates the rule
			p.pending.Backfill(*b)
		}
	}
}

// lookOlder takes the looks at the older look-back that are due, as far as there is time.
// One that fails is taken again later, in halves, and holds up nothing else.
func (p *pass) lookOlder(ctx context.Context) {
	if len(p.rules.Extent.Statuses) == 0 {
		return // no rule evaluates what is behind the cursor
	}
	looks := p.backlog.Looks(p.recentFromNS, p.watermarkNS)
	if len(looks) == 0 {
		return
	}
	counts := p.count(ctx, looks)
	for i, l := range looks {
		if i > 0 && p.over() {
			return
		}
		if err := p.look(ctx, l, counts.Server, counts.Counts[i]); err != nil {
			if !p.cut {
				p.backlog.LookFailed(l, p.watermarkNS)
			}
			p.putOff(ctx, "compare the look-back", err)
		}
	}
}

// count counts the rows of looks. Where they cannot be counted, which only saves
// comparisons, no server answers, and nobody asks again for a while.
func (p *pass) count(ctx context.Context, looks []backlog.Look) source.RowCounts {
	unknown := source.RowCounts{Counts: make([]uint64, len(looks))}
	if p.counting.Waits(p.Clock()) {
		return unknown
	}
	ranges := make([]cursor.Range, len(looks))
	for i, l := range looks {
		ranges[i] = l.Range
	}
	ctx, cancel := context.WithTimeout(ctx, p.queryTimeout())
	defer cancel()
	counts, err := p.Source.RowCounts(ctx, source.RowCountQuery{Tenants: p.tenants(), Ranges: ranges})
	if err != nil {
		p.counting.Fails(p.Clock())
		p.putOff(ctx, "count the look-back", err)
		return unknown
	}
	p.counting.Succeeds()
	return counts
}

// look compares the fingerprints of a planned look, if the rows may have changed. The
// rows were counted before: what comes in between, the next count shows.
func (p *pass) look(ctx context.Context, l backlog.Look, server string, rows uint64) error {
	if p.backlog.Compares(l, server, rows, p.watermarkNS) {
		began := p.Clock()
		ctx, cancel := context.WithTimeout(ctx, p.queryTimeout())
		defer cancel()
		seen, err := p.Source.Observe(ctx, source.ObserveQuery{
			Tenants: p.tenants(), Statuses: p.rules.Extent.Statuses, FromNS: l.FromNS, ToNS: l.ToNS, WidthNS: l.WidthNS,
		})
		if err != nil {
			return err
		}
		p.backlog.Compare(l, seen.Server, seen.Fingerprints, p.watermarkNS)
		if p.Clock().Sub(began) < p.queryTimeout()/4 {
			p.backlog.Quick(l)
		}
		if seen.Server != server {
			server = "" // the count says nothing about what was compared
		}
	}
	p.backlog.Looked(l, server, rows, p.watermarkNS)
	return nil
}

// readOlder reads the older changes from the oldest on, as far as there is time, and one of
// them at the least. One that cannot be read holds up no other (see backlog/unread.go).
func (p *pass) readOlder(ctx context.Context) error {
	tried := false
	for _, s := range p.backlog.Older(p.recentFromNS) {
		if tried && p.over() {
			return nil
		}
		if p.backlog.Waits(s, p.Clock()) {
			continue
		}
		tried = true
		conclusive, err := p.read(ctx, s)
		switch {
		case errors.As(err, new(sourceError)):
			if !p.cut {
				p.backlog.ReadFailed(s, p.Clock())
			}
			p.putOff(ctx, "evaluate changed ranges again", err)
		case err != nil:
			return err
		case conclusive:
			p.backlog.ReadSucceeded(s)
		}
	}
	return nil
}

// queryTimeout is how long a question about anything but what is new may take: what is new
// waits for it. With the interval it is less than [pauseNS], by the defaults, or each pass
// would take the one before for a pause.
func (p *pass) queryTimeout() time.Duration { return p.LeaseFor / 4 }

// putOff says that the source did not answer a question about anything but what is new: it
// is asked again, and what is new is evaluated meanwhile. Where the time of the pass went into
// it, the next pass goes on.
func (p *pass) putOff(ctx context.Context, what string, err error) {
	p.spent = p.spent || p.cut || p.over()
	if p.says(what) {
		p.Logger.WarnContext(ctx, "query postponed; it is retried, and new exchanges are evaluated meanwhile",
			slog.String("what", what), slog.Int("partition", p.number), slog.Any("error", err))
	}
}

// saysEvery is how often the log says the same about a partition.
const saysEvery = 5 * time.Minute

// says reports whether the log is to say something again.
func (p *partition) says(what string) bool {
	now := p.Clock()
	if now.Sub(p.saidAt[what]) < saysEvery {
		return false
	}
	if p.saidAt == nil {
		p.saidAt = map[string]time.Time{}
	}
	p.saidAt[what] = now
	return true
}
