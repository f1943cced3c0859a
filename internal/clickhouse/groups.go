package clickhouse

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tocsin/evaluator"
	"tocsin/rules"
)

// groupQuery counts the matching exchanges of a range by group. A row that is
// there twice counts once. The statement for several windows, and what sums of
// tallies amount to, give the same answer (see windows.go and tally.go).
func groupQuery(m *Mapping, w evaluator.WindowQuery, cond condition) query {
	q := query{parameters: maps.Clone(cond.parameters)}
	start := operand(m.StartTime)
	q.sql = fmt.Sprintf(`
SELECT
    %[1]s AS tocsin_group,
    toInt64(uniqExact(%[2]s)) AS tocsin_count,
    max(toUnixTimestamp64Nano(%[3]s))
FROM %[4]s
WHERE %[5]s
  AND %[3]s >= fromUnixTimestamp64Nano({from:Int64}, 'UTC')
  AND %[3]s < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND ifNull(%[6]s, toUnixTimestamp64Nano(%[3]s)) >= {ended_since:Int64}
  AND %[7]s
GROUP BY tocsin_group
ORDER BY tocsin_count DESC, tocsin_group
LIMIT {limit:UInt64}`, m.group(w.GroupBy), operand(m.ExecutionID), start, m.Table,
		m.rows(q.parameters, w.TenantID, w.FromNS, w.ToNS), m.end(), cond.sql)
	q.parameters["from"] = strconv.FormatInt(w.FromNS, 10)
	q.parameters["to"] = strconv.FormatInt(w.ToNS, 10)
	q.parameters["ended_since"] = strconv.FormatInt(w.EndedSinceNS, 10)
	q.parameters["limit"] = strconv.Itoa(w.Limit)
	return q
}

// group returns the expression by which a rule groups.
func (m *Mapping) group(by rules.GroupBy) string {
	switch by {
	case rules.GroupByRoute:
		return operand(m.Route)
	case rules.GroupByApplication:
		return operand(m.Application)
	case rules.GroupByEnvironment:
		return operand(m.Environment)
	case rules.GroupByNothing:
	}
	return "''"
}

// countWindow returns the groups of a window that hold a matching exchange.
func (s *Source) countWindow(ctx context.Context, w evaluator.WindowQuery) ([]evaluator.GroupCount, error) {
	matches, err := predicate(&s.mapping, w.Scope, w.Filter)
	if err != nil {
		return nil, fmt.Errorf("count window: %w", err)
	}
	q := groupQuery(&s.mapping, w, matches)
	rows, err := s.conn.Query(s.bounded(ctx, q, w.Limit), q.sql)
	if err != nil {
		return nil, s.explain(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells all there is
	var groups []evaluator.GroupCount
	for rows.Next() {
		var g evaluator.GroupCount
		if err := rows.Scan(&g.Group, &g.Observed, &g.NewestNS); err != nil {
			return nil, fmt.Errorf("clickhouse: read group: %w", err)
		}
		groups = append(groups, g)
	}
	if err := rows.Err(); err != nil {
		return nil, s.explain(err)
	}
	return groups, nil
}

// newestMost is how many exchanges, with their stacks, one query for the newest of
// groups reads.
const newestMost = 100

// newestQuery reads the exchanges that groups of a window were counted up to, sorted
// by when they began. What it reads ends where that of the next groups begins.
func newestQuery(m *Mapping, w evaluator.WindowQuery, groups []evaluator.GroupCount, cond condition) query {
	b := builder{prefix: "newest_", parameters: maps.Clone(cond.parameters)}
	start, group := operand(m.StartTime), m.group(w.GroupBy)
	pairs := make([]string, len(groups))
	for i, g := range groups {
		number := strconv.Itoa(i)
		pairs[i] = fmt.Sprintf("(%s, %s)", b.text("group_"+number, g.Group), b.integer("start_"+number, g.NewestNS))
	}
	q := query{parameters: b.parameters}
	fromNS, toNS := groups[0].NewestNS, groups[len(groups)-1].NewestNS+1
	q.sql = fmt.Sprintf(`
SELECT
    %[1]s
FROM %[2]s
WHERE %[3]s
  AND %[4]s >= fromUnixTimestamp64Nano({from:Int64}, 'UTC')
  AND %[4]s < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND ifNull(%[5]s, toUnixTimestamp64Nano(%[4]s)) >= {ended_since:Int64}
  AND %[6]s
  AND (%[7]s, toUnixTimestamp64Nano(%[4]s)) IN (%[8]s)
ORDER BY %[4]s, %[9]s DESC
LIMIT 1 BY %[7]s`, strings.Join(m.columns(), ",\n    "), m.Table, m.rows(q.parameters, w.TenantID, fromNS, toNS),
		start, m.end(), cond.sql, group, strings.Join(pairs, ", "), operand(m.ExecutionID))
	q.parameters["from"] = strconv.FormatInt(fromNS, 10)
	q.parameters["to"] = strconv.FormatInt(toNS, 10)
	q.parameters["ended_since"] = strconv.FormatInt(w.EndedSinceNS, 10)
	return q
}

// Newest returns the exchanges that groups of a window were counted up to.
func (s *Source) Newest(ctx context.Context, w evaluator.WindowQuery, groups []evaluator.GroupCount) ([]rules.Exchange, error) {
	matches, err := predicate(&s.mapping, w.Scope, w.Filter)
	if err != nil {
		return nil, fmt.Errorf("read newest exchanges: %w", err)
	}
	sorted := slices.Clone(groups)
	slices.SortFunc(sorted, func(a, b evaluator.GroupCount) int { return cmp.Compare(a.NewestNS, b.NewestNS) })
	byGroup := make(map[string]rules.Exchange, len(groups))
	for len(sorted) > 0 {
		some := sorted[:min(len(sorted), newestMost)]
		q := newestQuery(&s.mapping, w, some, matches)
		for q.size() > maxStatement && len(some) > 1 {
			some = some[:len(some)/2]
			q = newestQuery(&s.mapping, w, some, matches)
		}
		sorted = sorted[len(some):]
		list, err := s.page(ctx, q, w.TenantID, len(some))
		if err != nil {
			return nil, fmt.Errorf("read newest exchanges: %w", err)
		}
		for i := range list {
			byGroup[w.GroupBy.Of(&list[i])] = list[i]
		}
	}
	newest := make([]rules.Exchange, len(groups))
	for i, g := range groups {
		newest[i] = byGroup[g.Group]
	}
	return newest, nil
}
