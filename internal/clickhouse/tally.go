package clickhouse

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"tocsin/evaluator"
	"tocsin/rules"
)

// tallyQuery counts a tenant's exchanges by kind and stretch, and all of them
// together: where the sum of the parts is more than the whole, an exchange is
// in two of them.
func tallyQuery(m *Mapping, t evaluator.TallyQuery) query {
	q := query{parameters: map[string]string{}}
	start := operand(m.StartTime)
	ns := "toUnixTimestamp64Nano(" + start + ")"
	stretches := make([]string, len(t.FromNS))
	for i, from := range t.FromNS {
		stretches[i] = fmt.Sprintf("toInt64(%d)", from)
	}
	q.sql = fmt.Sprintf(`
SELECT
    grouping(tocsin_stretch) AS tocsin_part,
    %[1]s AS tocsin_status,
    %[2]s AS tocsin_environment,
    %[3]s AS tocsin_application,
    %[4]s AS tocsin_route,
    %[5]s AS tocsin_error_type,
    roundDown(%[6]s, [%[7]s]) AS tocsin_stretch,
    toInt64(uniqExact(%[8]s)),
    max(%[6]s),
    min(ifNull(%[9]s, %[6]s))
FROM %[10]s
WHERE %[11]s
  AND %[12]s >= fromUnixTimestamp64Nano({from:Int64}, 'UTC')
  AND %[12]s < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND %[13]s
GROUP BY GROUPING SETS (
    (tocsin_status, tocsin_environment, tocsin_application, tocsin_route, tocsin_error_type, tocsin_stretch),
    ())`, m.status(), field(t.Environment, m.Environment), field(t.Application, m.Application), field(t.Route, m.Route),
		field(t.ErrorType, m.ErrorType), ns, strings.Join(stretches, ", "), operand(m.ExecutionID), m.end(), m.Table,
		m.rows(q.parameters, t.TenantID, t.FromNS[0], t.ToNS), start, m.hasStatus(t.Statuses))
	q.parameters["from"] = strconv.FormatInt(t.FromNS[0], 10)
	q.parameters["to"] = strconv.FormatInt(t.ToNS, 10)
	return q
}

// field returns a field as text, and nothing where it is not asked for.
func field(wanted bool, expression string) string {
	if !wanted {
		return "''"
	}
	return "toString(" + textOf(expression) + ")"
}

// Tally returns how many exchanges there are of each kind.
func (s *Source) Tally(ctx context.Context, t evaluator.TallyQuery) (tallies []evaluator.Tally, exact bool, err error) {
	q := tallyQuery(&s.mapping, t)
	rows, err := s.conn.Query(s.bounded(ctx, q, t.Limit+1), q.sql)
	if err != nil {
		return nil, false, s.explain(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells all there is
	var parts, whole int64
	for rows.Next() {
		var together uint64
		var status string
		var y evaluator.Tally
		if err := rows.Scan(&together, &status, &y.Environment, &y.Application, &y.Route, &y.ErrorType, &y.FromNS,
			&y.Observed, &y.NewestNS, &y.EarliestEndNS); err != nil {
			return nil, false, fmt.Errorf("clickhouse: read tally: %w", err)
		}
		if together == 1 {
			whole += y.Observed
			continue
		}
		parts += y.Observed
		y.Status = rules.Status(status)
		tallies = append(tallies, y)
	}
	if err := rows.Err(); err != nil {
		return nil, false, s.explain(err)
	}
	return tallies, parts == whole, nil
}
