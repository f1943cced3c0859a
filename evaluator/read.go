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
	"tocsin/evaluator/retry"
	"tocsin/evaluator/source"
	"tocsin/rules"
)

// scan reads a page. It asks again, a few times, where another server answers than the one
// that showed what the range holds; matched is whether that server answered.
func (p *pass) scan(ctx context.Context, q source.Scan, server string) (page source.Page, matched bool, err error) {
	const tries = 4
	for range tries {
		for {
			q.Limit = min(q.Limit, max(p.pageSize*bulk, 1))
			page, err = p.Source.Scan(ctx, q)
			if !errors.Is(err, source.ErrTooMuch) || q.Limit == 1 {
				break
			}
			p.pageSize, q.Limit = max(1, p.pageSize/2), max(1, q.Limit/2)
		}
		if err != nil {
			return page, false, sourceError{fmt.Errorf("scan exchanges: %w", err)}
		}
		p.result.Scanned += len(page.Exchanges)
		if p.pageSize < p.PageSize {
			p.pageSize++
		}
		if page.Server == server {
			return page, true, nil
		}
	}
	p.Logger.DebugContext(ctx, "another ClickHouse server answers", slog.String("want", server), slog.String("got", page.Server))
	return page, false, nil
}

// reading is a page to be read: by the partition of what is new or changed, by rules that are
// behind of what they lack, by a replay of what a person asked for.
type reading struct {
	source.Scan
	// end is how far it comes where the page is not full.
	end cursor.Position
	// server showed what the range holds: only its answers take anybody further.
	server string
	// within bounds it; 0 leaves that to the pass.
	within time.Duration
	// spans are those of the rules on whose behalf alone the page is read, the leading rule's first. page adapts
	// them to what the source answers in time.
	spans []*retry.Span
}

// page reads a page, and returns how far that comes: to its last exchange where it is full, else to
// the end. An empty range asks nobody.
func (p *pass) page(ctx context.Context, r reading) (page []rules.Exchange, at cursor.Position, matched bool, err error) {
	if r.within > 0 {
		bounded, cancel := context.WithTimeout(ctx, r.within)
		defer cancel()
		ctx = bounded
	}
	began, got := p.Clock(), source.Page{}
	at, matched = r.end, true
	if r.After.StartTimeNS < r.BeforeNS {
		got, matched, err = p.scan(ctx, r.Scan, r.server)
	}
	if last := len(got.Exchanges) - 1; got.More && last >= 0 {
		at = got.Exchanges[last].Position()
	}
	if err != nil {
		for _, s := range r.spans {
			if !p.cut {
				s.Fails(p.Clock())
			}
		}
		return nil, r.end, false, err
	}
	for _, s := range r.spans {
		s.Succeeds()
	}
	little := at == r.end && len(got.Exchanges) < r.Limit/2
	if len(r.spans) > 0 && matched && little && p.Clock().Sub(began) < p.Interval/4 {
		r.spans[0].Widen()
	}
	return got.Exchanges, at, matched, nil
}

// bulk is how many usual pages are read at once of what is not recent: what a query costs
// for itself is several times what a page of rows costs.
const bulk = 10

// read evaluates a stretch page by page. What it raises and how far it has come is one
// commit for each page that raises anything, and one at the end. It is conclusive if the server that
// showed the range answered every scan.
func (p *pass) read(ctx context.Context, s backlog.Stretch) (conclusive bool, err error) {
	q := reading{Scan: p.rules.Extent.Scan(p.at.Index, p.at.Of), end: cursor.Position{StartTimeNS: s.ToNS}, server: s.Server}
	q.BeforeNS, q.Limit = s.ToNS, p.pageSize
	if s.FromNS < p.recentFromNS {
		q.Limit, q.within = p.pageSize*bulk, p.queryTimeout()
	}
	// A scan begins strictly after its position; one nanosecond early is all of the range.
	q.After = cursor.Position{StartTimeNS: s.FromNS - 1}
	if at := p.at.Cursor; s.Forward && s.FromNS == at.StartTimeNS+1 && at.ExecutionID != "" {
		q.After = *at // others of its instant follow
	}
	read, committed := map[string]int{}, false
	conclusive = true
	// Of what lies after the cursor the observation may have shown that there is nothing.
	nothing := s.Forward && s.FromNS == p.forwardNS && p.backlog.NothingAfter()
	for !nothing && s.FromNS < s.ToNS && q.After.StartTimeNS < q.BeforeNS && len(q.Statuses) > 0 {
		if p.over() {
			q.Limit = p.pageSize * bulk // the pass may be cut off, and has to come further
		}
		page, end, matched, err := p.page(ctx, q)
		if err != nil {
			return false, err
		}
		conclusive = conclusive && matched
		found, judged := p.judge(page)
		if judged < len(page) {
			end = page[judged-1].Position()
		}
		for i := range page[:judged] {
			read[page[i].TenantID]++
		}
		last := end.StartTimeNS >= s.ToNS
		// It ends between two buckets at the earliest, so that each pass comes further.
		ending := !last && p.ending() && p.backlog.Bucket(end.StartTimeNS) > s.FromNS
		if len(found.instances) > 0 || last || ending {
			if err := p.commit(ctx, found, p.stepTo(s, end, conclusive)); err != nil {
				return false, err
			}
			committed = last
		}
		if ending {
			return conclusive, nil
		}
		q.After = end
		if name := p.greedy(read, q.Tenants); s.FromNS >= p.recentFromNS && !last && name != "" {
			deferred := p.rules.Defer(name, end, cursor.Position{StartTimeNS: p.watermarkNS})
			for _, b := range deferred {
				p.pending.Backfill(b)
			}
			p.result.Deferred += min(len(deferred), 1)
			q.Tenants.Names = slices.DeleteFunc(slices.Clone(q.Tenants.Names), func(n string) bool { return n == name })
			q.Tenants.Of = 0
			delete(read, name)
		}
	}
	if s.Forward && !committed {
		// Nothing is new: the commit keeps the lease, and moves the cursor of window rules.
		return conclusive, p.commit(ctx, findings{}, p.stepTo(s, cursor.Position{StartTimeNS: s.ToNS}, true))
	}
	return conclusive, nil
}

// stepTo returns how far a stretch has come when it is read up to a position.
func (p *pass) stepTo(s backlog.Stretch, end cursor.Position, conclusive bool) step {
	next := step{cursor: p.at.Cursor, server: s.Server, judged: p.backlog.Read(s, end.StartTimeNS, conclusive, p.watermarkNS)}
	if s.Forward && end.After(*p.at.Cursor) {
		next.cursor = &end
	}
	return next
}

// shareOf is the part of the interval for which one tenant may hold up what is recent of the
// others.
const shareOf = 2

// greedy returns the tenant of most of what was read, if it took more than its share of
// the pass and others wait behind it; "" is none.
func (p *pass) greedy(read map[string]int, tenants source.Tenants) string {
	if len(tenants.Names) < 2 || p.Clock().Before(p.began.Add(p.Interval/shareOf)) {
		return ""
	}
	sum, most := 0, ""
	for name, n := range read {
		sum += n
		if most == "" || n > read[most] {
			most = name
		}
	}
	if 2*read[most] <= sum {
		return ""
	}
	return most
}
