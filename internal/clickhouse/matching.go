package clickhouse

import (
	"context"
	"fmt"

	"tocsin/cursor"
	"tocsin/rules"
)

// CountQuery asks how many exchanges of a range of start times match.
type CountQuery struct {
	TenantID string
	// FromNS is inclusive, ToNS exclusive.
	FromNS, ToNS int64
	// WidthNS is the width of a bucket; bucket n begins at n × WidthNS.
	WidthNS int64
	Scope   rules.Scope
	Filter  rules.Filter
}

// Bucket counts the matching exchanges that began from FromNS on, for the width
// that was asked for.
type Bucket struct {
	FromNS int64
	Count  uint64
}

// MatchQuery asks for exchanges that match, after a position and before a
// start time, exclusive.
type MatchQuery struct {
	TenantID string
	After    cursor.Position
	BeforeNS int64
	Limit    int
	Scope    rules.Scope
	Filter   rules.Filter
}

// Count returns the buckets that hold a matching exchange, ascending, and the
// sum of their counts. ClickHouse judges; it agrees with [rules.Matcher]. An
// exchange whose row is there twice counts once.
func (s *Source) Count(ctx context.Context, cq CountQuery) (total uint64, buckets []Bucket, err error) {
	if cq.WidthNS < 1 || cq.ToNS <= cq.FromNS {
		return 0, nil, fmt.Errorf("count exchanges: want a width of at least 1 ns and a range, not %d ns from %d to %d", cq.WidthNS, cq.FromNS, cq.ToNS)
	}
	matches, err := predicate(&s.mapping, cq.Scope, cq.Filter)
	if err != nil {
		return 0, nil, fmt.Errorf("count exchanges: %w", err)
	}
	q := countQuery(&s.mapping, cq, matches)
	rows, err := s.conn.Query(s.bounded(ctx, q, int((cq.ToNS-cq.FromNS)/cq.WidthNS+2)), q.sql)
	if err != nil {
		return 0, nil, s.explain(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells all there is
	for rows.Next() {
		var number int64
		var count uint64
		if err := rows.Scan(&number, &count); err != nil {
			return 0, nil, fmt.Errorf("clickhouse: read count: %w", err)
		}
		buckets = append(buckets, Bucket{FromNS: number * cq.WidthNS, Count: count})
		total += count
	}
	if err := rows.Err(); err != nil {
		return 0, nil, s.explain(err)
	}
	return total, buckets, nil
}

// Matching returns the matching exchanges of a range in the order of their
// positions, at most Limit; fewer mean that there are no more. Each terminal
// row is returned, those that are there twice too.
func (s *Source) Matching(ctx context.Context, mq MatchQuery) ([]rules.Exchange, error) {
	return s.matching(ctx, mq, 0)
}

// matching is the same for as many bytes at most, where these are not 0.
func (s *Source) matching(ctx context.Context, mq MatchQuery, maxBytes int) ([]rules.Exchange, error) {
	matches, err := predicate(&s.mapping, mq.Scope, mq.Filter)
	if err != nil {
		return nil, fmt.Errorf("find matching exchanges: %w", err)
	}
	return s.pageAfter(ctx, page{
		tenantID: mq.TenantID, after: mq.After, beforeNS: mq.BeforeNS, limit: mq.Limit,
		terminal: s.mapping.terminal(), condition: matches, maxBytes: maxBytes,
	})
}
