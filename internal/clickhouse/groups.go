package clickhouse

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	"tocsin/cursor"
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

// newestCandidates bounds how many exchanges of one nanosecond are looked
// through for one of the right group.
const newestCandidates = 100

// Newest returns the exchange that a group was counted up to. The zero exchange
// means that it is no longer there.
func (s *Source) Newest(ctx context.Context, w evaluator.WindowQuery, g evaluator.GroupCount) (rules.Exchange, error) {
	list, err := s.Matching(ctx, MatchQuery{
		TenantID: w.TenantID, After: cursor.Position{StartTimeNS: g.NewestNS - 1}, BeforeNS: g.NewestNS + 1,
		Limit: newestCandidates, Scope: w.Scope, Filter: w.Filter,
	})
	if err != nil {
		return rules.Exchange{}, fmt.Errorf("read newest exchange: %w", err)
	}
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].StartTimeNS == g.NewestNS && w.GroupBy.Of(&list[i]) == g.Group {
			return list[i], nil
		}
	}
	return rules.Exchange{}, nil
}
