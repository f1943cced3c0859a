package model

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"

	"tocsin/evaluator/source"
	"tocsin/rules"
)

// Row is a row of an exchange, and when each server shows it, in nanoseconds since the Unix epoch.
// Hidden is when a server stops showing it, because another row has replaced it.
type Row struct {
	rules.Exchange
	VisibleNS []int64
	HiddenNS  []int64
	checksum  uint64
}

// ClickHouse is a table on several servers. It is not safe for concurrent use.
type ClickHouse struct {
	// Now is the true time, by which rows become visible; Clock is the clock of each server. Both
	// are in nanoseconds since the Unix epoch.
	Now   func() int64
	Clock func(server int) int64
	// MostRows limits the rows that a server returns at once: it returns an error instead of
	// cutting a result off. 0 means no limit.
	MostRows int
	// MostTallies limits the tallies of one answer in the same way, in addition to the limit of the query.
	MostTallies int
	// rows are in the order of their positions.
	rows []*Row
}

// Insert adds a row.
func (ch *ClickHouse) Insert(r Row) *Row {
	h := fnv.New64a()
	_, _ = h.Write([]byte(r.TenantID + "\x00" + r.ExecutionID))
	r.checksum = h.Sum64()
	row := &r
	at, _ := slices.BinarySearchFunc(ch.rows, row, func(a, b *Row) int { return cmp.Or(a.Position().Compare(b.Position()), -1) })
	ch.rows = slices.Insert(ch.rows, at, row)
	return row
}

// seen yields what a server shows of a range of start times.
func (ch *ClickHouse) seen(server int, tenants []string, fromNS, toNS int64, yield func(r *Row)) {
	now := ch.Now()
	from, _ := slices.BinarySearchFunc(ch.rows, fromNS, func(r *Row, ns int64) int { return cmp.Compare(r.StartTimeNS, ns) })
	for _, r := range ch.rows[from:] {
		if r.StartTimeNS >= toNS {
			return
		}
		if r.VisibleNS[server] <= now && (r.HiddenNS == nil || r.HiddenNS[server] > now) && slices.Contains(tenants, r.TenantID) {
			yield(r)
		}
	}
}

func serverName(server int) string { return fmt.Sprint("server ", server) }

// On returns a server as the evaluator uses it. For each query, pick chooses the server that
// answers.
func (ch *ClickHouse) On(pick func() int) *Server { return &Server{ch, pick} }

// Server is the connection of one replica.
type Server struct {
	ch   *ClickHouse
	pick func() int
}

// Observe returns the clock and the fingerprints of a range.
func (s *Server) Observe(_ context.Context, q source.ObserveQuery) (source.Observation, error) {
	server := s.pick()
	o := source.Observation{Server: serverName(server), NowNS: s.ch.Clock(server)}
	to := q.ToNS
	if to == 0 {
		to = o.NowNS - q.SettleNS
	}
	at := -1
	s.ch.seen(server, q.Tenants.Names, q.FromNS, to, func(r *Row) {
		if !slices.Contains(q.Statuses, r.Status) {
			return
		}
		from := r.StartTimeNS - r.StartTimeNS%q.WidthNS
		if from < q.SplitNS && r.StartTimeNS >= q.SplitNS {
			from = q.SplitNS
		}
		if at < 0 || o.Fingerprints[at].FromNS != from {
			o.Fingerprints = append(o.Fingerprints, source.Fingerprint{FromNS: from})
			at++
		}
		o.Fingerprints[at].Count++
		o.Fingerprints[at].Checksum += r.checksum
	})
	return o, nil
}

// RowCounts returns how many rows begin in each of some ranges.
func (s *Server) RowCounts(_ context.Context, q source.RowCountQuery) (source.RowCounts, error) {
	server := s.pick()
	out := source.RowCounts{Server: serverName(server), Counts: make([]uint64, len(q.Ranges))}
	for i, r := range q.Ranges {
		s.ch.seen(server, q.Tenants.Names, r.FromNS, r.ToNS, func(*Row) { out.Counts[i]++ })
	}
	return out, nil
}

// Scan returns the terminal exchanges of a range in the order of their positions.
func (s *Server) Scan(_ context.Context, q source.Scan) (source.Page, error) {
	server := s.pick()
	page := source.Page{Server: serverName(server)}
	if s.ch.MostRows > 0 && q.Limit > s.ch.MostRows {
		return page, source.ErrTooMuch
	}
	s.ch.seen(server, q.Tenants.Names, q.After.StartTimeNS, q.BeforeNS, func(r *Row) {
		e := &r.Exchange
		n := len(page.Exchanges)
		switch {
		case page.More && page.Exchanges[n-1].Position() != e.Position(),
			!e.Position().After(q.After), !slices.Contains(q.Statuses, e.Status),
			len(q.Applications) > 0 && !slices.Contains(q.Applications, e.Application),
			q.EndedSinceNS != 0 && e.EndedNS() < q.EndedSinceNS,
			e.Status == rules.Completed && e.DurationNS < q.CompletedLeastNS,
			q.Narrow != nil && !narrows(q.Narrow, e):
			return
		}
		page.Exchanges = append(page.Exchanges, *e)
		page.More = page.More || n+1 >= q.Limit
	})
	return page, nil
}

// narrows reports whether a condition matches.
func narrows(n *source.Narrowing, e *rules.Exchange) bool {
	m, err := rules.Compile(n.Scope, n.Filter)
	return err == nil && m.Match(e)
}
