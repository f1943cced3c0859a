package evaluator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"tocsin/cursor"
)

// mostAhead is how far beyond the store's clock a watermark may lie. Clocks that are kept
// in step differ by milliseconds, and what begins within a minute behind a cursor is
// compared by every pass.
const mostAhead = time.Minute

// errStoodStill says that the process stood still since its lease was confirmed: the next
// pass knows the time better.
var errStoodStill = errors.New("the process stood still")

// observe reads the source's clock and the fingerprints of what is recent, and returns
// what to read first.
func (p *pass) observe(ctx context.Context) ([]stretch, error) {
	seen, fromNS, err := p.observeRecent(ctx)
	if err != nil {
		return nil, sourceError{err}
	}
	// The store's clock was read some moments before the source's. Where the process stood
	// still between them, the former measure is the better one.
	p.server = seen.Server
	if p.Clock().Sub(p.adoptedAt) < time.Second {
		p.clockOffset = time.Unix(0, seen.NowNS).Sub(p.heldAt)
	}
	if ahead := time.Duration(p.watermarkNS - p.heldAt.UnixNano()); ahead > mostAhead {
		if p.Clock().Sub(p.adoptedAt) > ahead-mostAhead {
			return nil, errStoodStill
		}
		return nil, sourceError{fmt.Errorf("ClickHouse's clock is %v ahead of Postgres's: nothing is judged, or the cursor would pass over what begins meanwhile; "+
			"set the clock that is wrong", ahead.Round(time.Minute))}
	}
	p.result.Observed, p.recentFromNS = true, fromNS
	p.begin()
	p.memory.advance(p.watermarkNS)
	p.forwardNS = min(max(p.splitNS(), p.recentFromNS), max(p.watermarkNS, p.recentFromNS))
	p.fresh = map[int64]fingerprint{}
	behind := Observation{Server: seen.Server}
	for _, f := range seen.Fingerprints {
		if f.FromNS >= p.forwardNS {
			p.fresh[f.FromNS] = fingerprint{f.Count, f.Checksum}
		} else {
			behind.Fingerprints = append(behind.Fingerprints, f)
		}
	}
	p.memory.compare(behind, Range{p.recentFromNS, p.forwardNS}, p.watermarkNS)
	return p.memory.planRecent(p.server, p.recentFromNS, p.forwardNS, p.watermarkNS), nil
}

// observeRecent reads the source's clock, and the fingerprints from about two minutes
// before it on. Where it does not know the clock well enough, it asks for that first.
func (p *pass) observeRecent(ctx context.Context) (seen Observation, fromNS int64, err error) {
	estimate := p.watermarkNS + p.Clock().Sub(p.observedAt).Nanoseconds()
	q := ObserveQuery{Tenants: p.tenants(), Statuses: p.rules.narrow.statuses, SettleNS: p.Settle.Nanoseconds(), WidthNS: secondNS}
	for range 3 {
		q.FromNS = floor(estimate-recentNS, minuteNS)
		if p.at.Cursor != nil {
			q.SplitNS = p.splitNS()
		}
		if p.observedAt.IsZero() || len(q.Statuses) == 0 {
			q.FromNS, q.ToNS = 1, 1 // the clock alone
		} else {
			q.ToNS = 0
		}
		if seen, err = p.Source.Observe(ctx, q); err != nil {
			return seen, 0, fmt.Errorf("observe: %w", err)
		}
		p.watermarkNS, p.observedAt = seen.NowNS-q.SettleNS, p.Clock()
		estimate = p.watermarkNS
		fromNS = floor(p.watermarkNS-recentNS, minuteNS)
		if len(q.Statuses) == 0 || (q.ToNS == 0 && q.FromNS <= fromNS && q.FromNS >= fromNS-minuteNS) {
			return seen, max(min(q.FromNS, fromNS), fromNS-minuteNS), nil
		}
	}
	return seen, 0, errors.New("the source's clock jumps about")
}

// tenants names whose exchanges the partition observes.
func (p *pass) tenants() Tenants {
	t := Tenants{Names: p.rules.narrow.tenants, Index: p.at.Index, Of: p.at.Of}
	if len(t.Names) == 0 {
		t.Names = p.rules.windowTenants
	}
	return t
}

// splitNS returns the start time from which on nothing was passed by the cursor. Where
// the cursor stands at an exchange, others of the same instant may lie before it.
func (p *pass) splitNS() int64 {
	if p.at.Cursor.ExecutionID != "" {
		return p.at.Cursor.StartTimeNS + 1
	}
	return p.at.Cursor.StartTimeNS
}

// pauseNS is how far apart the watermarks of two passes may be for [WaitNS] to hold. After
// a longer pause the whole look-back is looked at again before the mark is cleared.
const pauseNS = 5 * secondNS

// begin brings cursor and memory in line with the watermark, before anything is read.
//
// A cursor that lies before what every pass compares goes forward to there at once: what
// it passes is put into the backlog, so that what is new waits for no outage to be caught
// up with. The commit that moves it stores that as the backfill mark.
func (p *pass) begin() {
	watermark := cursor.Position{StartTimeNS: p.watermarkNS}
	if p.at.Cursor == nil || p.at.Cursor.StartTimeNS > p.watermarkNS+mostAhead.Nanoseconds() {
		// There is none, or it was stored by a clock that was ahead.
		p.at.Cursor, p.memory = &watermark, nil
	}
	at := *p.at.Cursor
	m := p.memory
	if m == nil {
		m = newMemory(p.rules.narrow.statuses)
		p.memory = m
		m.baseNS, m.fromNS = min(at.StartTimeNS, p.watermarkNS), min(at.StartTimeNS, p.watermarkNS)-p.rules.reachNS
		if mark := p.at.Backfill; mark != nil {
			m.baseNS, m.fromNS = min(m.baseNS, mark.CursorNS), min(m.fromNS, mark.FromNS)
		}
		m.lookAt(Range{m.fromNS, p.recentFromNS})
	} else if m.empty() {
		m.baseNS = min(at.StartTimeNS, p.watermarkNS)
		m.fromNS = m.baseNS - p.rules.reachNS
	} else {
		m.fromNS = min(m.fromNS, m.baseNS-p.rules.reachNS) // a rule may look back further than before
	}
	if p.watermarkNS-at.StartTimeNS > pauseNS {
		m.lookAt(Range{min(m.fromNS, at.StartTimeNS), p.recentFromNS})
	}
	for _, r := range p.rules.byID {
		if b := r.backfill; b != nil && b.Until == nil && !r.failing {
			b.Until = &at // from here on the partition judges the rule
			p.extra.backfill(*b)
		}
	}
}

// lookOlder takes the looks at the older look-back that are due, as far as there is time.
// One that fails is taken again by the next pass, and holds up nothing else.
func (p *pass) lookOlder(ctx context.Context) {
	if len(p.rules.narrow.statuses) == 0 {
		p.memory.unlooked = nil // no rule judges what is behind the cursor
		return
	}
	looks := p.memory.planLooks(p.recentFromNS, p.watermarkNS)
	if len(looks) == 0 {
		return
	}
	ranges := make([]Range, len(looks))
	for i, l := range looks {
		ranges[i] = l.Range
	}
	counts, err := p.Source.RowCounts(ctx, RowCountQuery{Tenants: p.tenants(), Ranges: ranges})
	if err != nil {
		p.lookFailed(ctx, err)
		return
	}
	for i, l := range looks {
		if i > 0 && p.over() {
			return
		}
		if err := p.look(ctx, l, counts.Server, counts.Counts[i]); err != nil {
			p.lookFailed(ctx, err)
			return
		}
	}
	p.lookProblem = ""
}

// skipLooks notes which looks are due and were not taken by the pass, whatever ended it.
// Until they are, the cursor from which the look-back is counted stays where it is: what
// becomes visible at the far end of the look-back meanwhile is still looked at.
func (p *pass) skipLooks() {
	p.memory.skipped = nil
	if len(p.rules.narrow.statuses) == 0 {
		return
	}
	for _, l := range p.memory.planLooks(p.recentFromNS, p.watermarkNS) {
		p.memory.skipped = append(p.memory.skipped, l.Range)
	}
}

// look compares the fingerprints of a planned look, if the rows may have changed. The
// rows were counted before: what comes in between, the next count shows.
func (p *pass) look(ctx context.Context, l planned, server string, rows uint64) error {
	m := p.memory
	last := m.looks[l.key]
	last.lookedNS = p.watermarkNS
	if m.compares(l, server, rows, p.watermarkNS) {
		seen, err := p.Source.Observe(ctx, ObserveQuery{
			Tenants: p.tenants(), Statuses: p.rules.narrow.statuses, FromNS: l.FromNS, ToNS: l.ToNS, WidthNS: m.widthNS(l.FromNS),
		})
		if err != nil {
			return fmt.Errorf("compare the look-back: %w", err)
		}
		m.compare(seen, l.Range, p.watermarkNS)
		last.comparedNS = p.watermarkNS
		if seen.Server != server {
			server = "" // the count says nothing about what was compared
		}
	}
	last.of, last.server, last.rows = l.Range, server, rows
	m.looks[l.key] = last
	return nil
}

func (p *pass) lookFailed(ctx context.Context, err error) {
	if p.lookProblem != err.Error() {
		p.lookProblem = err.Error()
		p.Logger.WarnContext(ctx, "look-back not compared; it is tried again, and what is new is judged meanwhile",
			slog.Int("partition", p.number), slog.Any("error", err))
	}
}
