package clickhouse

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	"tocsin/evaluator/reconcile"
)

// matchedQuery finds positions and ends by a condition. Its bound is a disjunction, for the reason
// given at [page.begin].
func matchedQuery(m *Mapping, mq reconcile.MatchedQuery, cond condition) query {
	start, id := operand(m.StartTime), operand(m.ExecutionID)
	q := query{parameters: maps.Clone(cond.parameters)}
	ended := fmt.Sprintf("ifNull(%s, toUnixTimestamp64Nano(%s))", m.end(), start)
	q.sql = fmt.Sprintf(`
SELECT
    toUnixTimestamp64Nano(%[1]s),
    %[2]s,
    %[3]s
FROM %[4]s
WHERE %[5]s
  AND (%[1]s > fromUnixTimestamp64Nano({after:Int64}, 'UTC')
       OR (%[1]s = fromUnixTimestamp64Nano({after:Int64}, 'UTC') AND %[2]s > unhex({after_id:String})))
  AND %[1]s < fromUnixTimestamp64Nano({before:Int64}, 'UTC')
  AND %[3]s >= {ended_from:Int64}
  AND %[3]s < {ended_to:Int64}
  AND %[6]s
ORDER BY %[1]s, %[2]s
LIMIT {limit:UInt64}`, start, id, ended, m.Table, m.rowsOf(q.parameters, one(mq.TenantID), mq.After.StartTimeNS, mq.BeforeNS), cond.sql)
	q.parameters["after"] = strconv.FormatInt(mq.After.StartTimeNS, 10)
	q.parameters["after_id"] = hexadecimal(mq.After.ExecutionID)
	q.parameters["before"] = strconv.FormatInt(mq.BeforeNS, 10)
	q.parameters["ended_from"] = strconv.FormatInt(mq.EndedFromNS, 10)
	q.parameters["ended_to"] = strconv.FormatInt(mq.EndedToNS, 10)
	q.parameters["limit"] = strconv.Itoa(mq.Limit)
	return q
}

// Matched returns the exchanges that match a condition. ClickHouse evaluates the condition.
func (s *Source) Matched(ctx context.Context, mq reconcile.MatchedQuery) ([]reconcile.Matched, error) {
	matches, err := predicate(&s.mapping, mq.Scope, mq.Filter)
	if err != nil {
		return nil, fmt.Errorf("find matched exchanges: %w", err)
	}
	q := matchedQuery(&s.mapping, mq, matches)
	rows, err := s.conn.Query(s.bounded(ctx, q, mq.Limit), q.sql)
	if err != nil {
		return nil, s.explain(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err reports every error
	var list []reconcile.Matched
	for rows.Next() {
		var e reconcile.Matched
		if err := rows.Scan(&e.StartTimeNS, &e.ExecutionID, &e.EndedNS); err != nil {
			return nil, fmt.Errorf("clickhouse: read matched exchange: %w", err)
		}
		list = append(list, e)
	}
	if err := rows.Err(); err != nil {
		return nil, s.explain(err)
	}
	return list, nil
}
