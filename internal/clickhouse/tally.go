package clickhouse

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"tocsin/evaluator/window"
	"tocsin/rules"
)

// tallyQuery counts exchanges by tenant, kind and stretch, and all of a tenant
// together: where the sum of the parts is more than the whole, an exchange is in two of
// them.
func tallyQuery(m *Mapping, t window.TallyQuery) query {
	q := query{parameters: map[string]string{}}
	stretches := make([]string, len(t.FromNS))
	for i, from := range t.FromNS {
		stretches[i] = fmt.Sprintf("toInt64(%d)", from)
	}
	q.sql = fmt.Sprintf(`
WITH %[1]s AS tocsin_ended
SELECT
    grouping(tocsin_stretch) AS tocsin_part,
    toString(%[2]s) AS tocsin_tenant,
    %[3]s AS tocsin_status,
    %[4]s AS tocsin_environment,
    %[5]s AS tocsin_application,
    %[6]s AS tocsin_route,
    %[7]s AS tocsin_error_type,
    %[15]s AS tocsin_least,
    roundDown(tocsin_ended, [%[8]s]) AS tocsin_stretch,
    toInt64(uniqExact(%[9]s)),
    %[10]s
FROM %[11]s
WHERE %[12]s
  AND %[13]s >= fromUnixTimestamp64Nano({start:Int64}, 'UTC')
  AND %[13]s < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND tocsin_ended >= {from:Int64}
  AND tocsin_ended < {to:Int64}
  AND %[14]s
GROUP BY GROUPING SETS (
    (tocsin_tenant, tocsin_status, tocsin_environment, tocsin_application, tocsin_route, tocsin_error_type, tocsin_least, tocsin_stretch),
    (tocsin_tenant))`, m.ended(), m.tenant(), m.status(), field(t.Environment, m.Environment), field(t.Application, m.Application),
		field(t.Route, m.Route), field(t.ErrorType, m.ErrorType), strings.Join(stretches, ", "), operand(m.ExecutionID),
		m.newest("max", ""), m.Table, m.rowsOf(q.parameters, t.Tenants, t.StartFromNS, t.ToNS), operand(m.StartTime), m.hasStatus(t.Statuses), m.least(t.LeastNS))
	q.parameters["start"] = strconv.FormatInt(t.StartFromNS, 10)
	q.parameters["from"] = strconv.FormatInt(t.FromNS[0], 10)
	q.parameters["to"] = strconv.FormatInt(t.ToNS, 10)
	return q
}

// least returns from which of some durations on an exchange lasted, 0 where it is shorter
// than all of them.
func (m *Mapping) least(durations []int64) string {
	if len(durations) == 0 {
		return "toInt64(0)"
	}
	bounds := []string{"toInt64(0)"}
	for _, ns := range durations {
		bounds = append(bounds, fmt.Sprintf("toInt64(%d)", ns))
	}
	return fmt.Sprintf("roundDown(toInt64(least(%s, 9223372036854775807)), [%s])", m.duration(), strings.Join(bounds, ", "))
}

// field returns a field as text, and nothing where it is not asked for.
func field(wanted bool, expression string) string {
	if !wanted {
		return "''"
	}
	return "toString(" + textOf(expression) + ")"
}

// Tally returns how many exchanges there are of each kind.
func (s *Source) Tally(ctx context.Context, t window.TallyQuery) (tallies []window.Tally, inexact []string, err error) {
	q := tallyQuery(&s.mapping, t)
	rows, err := s.conn.Query(s.bounded(ctx, q, t.Limit), q.sql)
	if err != nil {
		return nil, nil, s.explain(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells all there is
	surplus := map[string]int64{}
	for rows.Next() {
		var whole uint64
		var status string
		var y window.Tally
		if err := rows.Scan(&whole, &y.TenantID, &status, &y.Environment, &y.Application, &y.Route, &y.ErrorType, &y.LeastNS, &y.FromNS,
			&y.Observed, &y.NewestEndedNS, &y.NewestStartNS); err != nil {
			return nil, nil, fmt.Errorf("clickhouse: read tally: %w", err)
		}
		if whole == 1 {
			surplus[y.TenantID] -= y.Observed
			continue
		}
		surplus[y.TenantID] += y.Observed
		y.Status = rules.Status(status)
		tallies = append(tallies, y)
	}
	if err := rows.Err(); err != nil {
		return nil, nil, s.explain(err)
	}
	for tenant, n := range surplus {
		if n != 0 {
			inexact = append(inexact, tenant)
		}
	}
	return tallies, inexact, nil
}
