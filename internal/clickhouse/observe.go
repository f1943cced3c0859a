package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"tocsin/evaluator/source"
)

// server is an expression that identifies the server that evaluates it within its cluster, by the
// identity of its data and its displayed name. For a Distributed table it identifies the server
// that received the query. load_balancing keeps the replicas that this server asks the same, as far
// as possible.
const server = "concat(toString(serverUUID()), ' ', displayName())"

// clockQuery reads only the clock.
func clockQuery() query {
	return query{sql: "SELECT " + server + ", toUnixTimestamp64Nano(now64(9))"}
}

// observeQuery reads the clock, and counts and sums the exchanges of a range by bucket. Its answer
// is always one row. Duplicate rows count twice until they are merged; in any case, a bucket with
// something new differs from before. It uses a sum and not an exclusive or, in which a duplicate
// row would cancel itself out.
//
// The returned clock and the end of the range are one expression, which ClickHouse evaluates once.
// Its old analyzer evaluates it twice, the returned value first. Then the range ends less than a
// millisecond later than the answer says, and nothing before the returned end is left out.
func observeQuery(m *Mapping, o source.ObserveQuery) query {
	q := query{parameters: map[string]string{
		"from": strconv.FormatInt(o.FromNS, 10), "width": strconv.FormatInt(o.WidthNS, 10),
	}}
	from, to := "fromUnixTimestamp64Nano({from:Int64}, 'UTC')", "fromUnixTimestamp64Nano({to:Int64}, 'UTC')"
	pruneTo := pruneInstant(o.ToNS)
	if o.ToNS != 0 {
		q.parameters["to"] = strconv.FormatInt(o.ToNS, 10)
	} else {
		q.parameters["settle"] = strconv.FormatInt(o.SettleNS, 10)
		to = "fromUnixTimestamp64Nano(tocsin_now - {settle:Int64}, 'UTC')"
		pruneTo = to
	}
	start := operand(m.StartTime)
	began := "toUnixTimestamp64Nano(" + start + ")"
	bucket := "intDiv(" + began + ", {width:Int64}) * {width:Int64}"
	if o.SplitNS != 0 {
		q.parameters["split"] = strconv.FormatInt(o.SplitNS, 10)
		bucket = "if(" + began + " >= {split:Int64}, greatest({split:Int64}, " + bucket + "), " + bucket + ")"
	}
	where := []string{
		m.tenants(q.parameters, o.Tenants),
		m.pruned(pruneInstant(o.FromNS), pruneTo),
		start + " >= " + from,
		start + " < " + to,
		m.terminalOf(o.Statuses),
	}
	q.sql = fmt.Sprintf(`
WITH toUnixTimestamp64Nano(now64(9)) AS tocsin_now
SELECT
    %[1]s,
    tocsin_now,
    groupArray(tocsin_bucket),
    groupArray(tocsin_count),
    groupArray(tocsin_checksum)
FROM (
SELECT
    %[2]s AS tocsin_bucket,
    count() AS tocsin_count,
    sum(cityHash64(%[3]s)) AS tocsin_checksum
FROM %[4]s
WHERE %[5]s
GROUP BY tocsin_bucket
)`, server, bucket, operand(m.ExecutionID), m.Table, all(where...))
	return q
}

// Observe returns the clock and the fingerprints of a range.
func (s *Source) Observe(ctx context.Context, o source.ObserveQuery) (source.Observation, error) {
	var answer source.Observation
	if o.ToNS != 0 && o.FromNS >= o.ToNS {
		q := clockQuery()
		err := s.row(ctx, q, &answer.Server, &answer.NowNS)
		return answer, err
	}
	if o.WidthNS < 1 {
		return answer, fmt.Errorf("observe: want a width of at least 1 ns, not %d", o.WidthNS)
	}
	q := observeQuery(&s.mapping, o)
	var buckets []int64
	var counts, checksums []uint64
	if err := s.row(ctx, q, &answer.Server, &answer.NowNS, &buckets, &counts, &checksums); err != nil {
		return source.Observation{}, err
	}
	if len(counts) != len(buckets) || len(checksums) != len(buckets) {
		return source.Observation{}, fmt.Errorf("clickhouse: %d buckets with %d counts and %d checksums", len(buckets), len(counts), len(checksums))
	}
	answer.Fingerprints = make([]source.Fingerprint, len(buckets))
	for i := range buckets {
		answer.Fingerprints[i] = source.Fingerprint{FromNS: buckets[i], Count: counts[i], Checksum: checksums[i]}
	}
	return answer, nil
}

// Now returns ClickHouse's clock, in nanoseconds since the Unix epoch.
func (s *Source) Now(ctx context.Context) (int64, error) {
	answer, err := s.Observe(ctx, source.ObserveQuery{FromNS: 1, ToNS: 1})
	if err != nil {
		return 0, fmt.Errorf("read the clock: %w", err)
	}
	return answer.NowNS, nil
}

// rowCountQuery counts the rows of ranges. Its conditions only use the primary key, because only
// then ClickHouse counts whole granules without reading them. So it has a condition on tenants if
// the key begins with the tenant, and none if it begins with the start time.
func rowCountQuery(m *Mapping, rq source.RowCountQuery, byStart bool) query {
	q := query{parameters: map[string]string{}}
	tenants := ""
	if !byStart {
		tenants = m.tenants(q.parameters, rq.Tenants)
	}
	start := operand(m.StartTime)
	counts := make([]string, len(rq.Ranges))
	for i, r := range rq.Ranges {
		where := []string{
			tenants,
			m.pruned(pruneInstant(r.FromNS), pruneInstant(r.ToNS)),
			start + " >= " + instant(r.FromNS),
			start + " < " + instant(r.ToNS),
		}
		counts[i] = fmt.Sprintf("SELECT toUInt32(%d) AS tocsin_range, count() AS tocsin_rows\nFROM %s\nWHERE %s", i, m.Table, all(where...))
	}
	q.sql = fmt.Sprintf(`
SELECT
    %s,
    groupArray(tocsin_range),
    groupArray(tocsin_rows)
FROM (
%s
)`, server, strings.Join(counts, "\nUNION ALL\n"))
	return q
}

// RowCounts returns how many rows begin in each of some ranges. If the table is sorted by start
// time, the rows are those of all tenants.
func (s *Source) RowCounts(ctx context.Context, rq source.RowCountQuery) (source.RowCounts, error) {
	if len(rq.Ranges) == 0 {
		answer, err := s.Observe(ctx, source.ObserveQuery{FromNS: 1, ToNS: 1})
		return source.RowCounts{Server: answer.Server}, err
	}
	q := rowCountQuery(&s.mapping, rq, s.sortedByStart(ctx))
	if middle := len(rq.Ranges) / 2; middle > 0 && q.size() > maxStatement {
		return s.rowCountsOfParts(ctx, rq, middle)
	}
	var answer source.RowCounts
	var numbers []uint32
	var counts []uint64
	if err := s.row(ctx, q, &answer.Server, &numbers, &counts); err != nil {
		return source.RowCounts{}, err
	}
	if len(numbers) != len(rq.Ranges) || len(counts) != len(rq.Ranges) {
		return source.RowCounts{}, fmt.Errorf("clickhouse: %d counts of %d ranges", len(numbers), len(rq.Ranges))
	}
	answer.Counts = make([]uint64, len(counts))
	for i, number := range numbers {
		answer.Counts[number] = counts[i]
	}
	return answer, nil
}

// errTwoServers means that one answer would be composed of the answers of two servers.
var errTwoServers = errors.New("two ClickHouse servers answered parts of one query; let TOCSIN_CLICKHOUSE_URL lead to the same server as long as it is up")

// rowCountsOfParts asks separately for the ranges before middle and from middle on.
func (s *Source) rowCountsOfParts(ctx context.Context, rq source.RowCountQuery, middle int) (source.RowCounts, error) {
	left, err := s.RowCounts(ctx, source.RowCountQuery{Tenants: rq.Tenants, Ranges: rq.Ranges[:middle]})
	if err != nil {
		return source.RowCounts{}, err
	}
	right, err := s.RowCounts(ctx, source.RowCountQuery{Tenants: rq.Tenants, Ranges: rq.Ranges[middle:]})
	if err != nil {
		return source.RowCounts{}, err
	}
	if left.Server != right.Server {
		return source.RowCounts{}, errTwoServers
	}
	return source.RowCounts{Server: left.Server, Counts: append(left.Counts, right.Counts...)}, nil
}

// sortedByStart reports whether the sort key of the table is known to begin with the start time.
// The first answer is kept until the process ends.
func (s *Source) sortedByStart(ctx context.Context) bool {
	if s.mapping.TenantID == "" {
		return true
	}
	if known := s.byStart.Load(); known != nil {
		return *known
	}
	layout, err := s.layout(ctx)
	if err != nil || layout == nil {
		return false
	}
	byStart := layout.beginsWith(s.mapping.StartTime)
	s.byStart.Store(&byStart)
	return byStart
}
