package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tocsin/evaluator/watch"
	"tocsin/evaluator/window/counting"
	"tocsin/rules"
)

// tallyQuery counts exchanges by tenant, kind and interval, and all exchanges of a tenant together.
// If the sum of the parts is larger than the whole, an exchange is in two of them. If attributes
// are requested, it counts for each of their values.
func tallyQuery(m *Mapping, t counting.TallyQuery) query {
	q := query{parameters: map[string]string{}}
	stretches := make([]string, len(t.FromNS))
	for i, from := range t.FromNS {
		stretches[i] = fmt.Sprintf("toInt64(%d)", from)
	}
	attribute, group, join := "''", "''", ""
	if len(t.Attributes) > 0 {
		b, keys := builder{parameters: q.parameters}, make([]string, len(t.Attributes))
		for i, key := range t.Attributes {
			keys[i] = b.text("attribute_"+strconv.Itoa(i), key)
		}
		attribute, join = "tocsin_of", "\nARRAY JOIN ["+strings.Join(keys, ", ")+"] AS tocsin_of"
		group = m.attributeGroup(attribute)
		q.maxBytes = maxAttributeBytes
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
    %[16]s AS tocsin_attribute,
    %[17]s AS tocsin_group,
    %[15]s AS tocsin_least,
    roundDown(tocsin_ended, [%[8]s]) AS tocsin_stretch,
    toInt64(uniqExact(%[9]s)),
    %[10]s
FROM %[11]s%[18]s
WHERE %[12]s
  AND %[13]s >= fromUnixTimestamp64Nano({start:Int64}, 'UTC')
  AND %[13]s < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND tocsin_ended >= {from:Int64}
  AND tocsin_ended < {to:Int64}
  AND %[14]s
GROUP BY GROUPING SETS (
    (tocsin_tenant, tocsin_status, tocsin_environment, tocsin_application, tocsin_route, tocsin_error_type, tocsin_attribute, tocsin_group, tocsin_least, tocsin_stretch),
    (tocsin_tenant, tocsin_attribute))`, m.ended(), m.tenant(), m.status(), field(t.Environment, m.Environment), field(t.Application, m.Application),
		field(t.Route, m.Route), field(t.ErrorType, m.ErrorType), strings.Join(stretches, ", "), operand(m.ExecutionID),
		m.newest("max", ""), m.Table, m.rowsOf(q.parameters, t.Tenants, t.StartFromNS, t.ToNS), operand(m.StartTime), m.hasStatus(t.Statuses), m.least(t.LeastNS), attribute, group, join)
	if t.NamesServer {
		q.sql += fmt.Sprintf(`
UNION ALL
SELECT %d, %s, '', '', '', '', '', '', '', toInt64(0), toInt64(0), toInt64(0), toInt64(0), toInt64(0)`, partServer, server)
	}
	q.parameters["start"] = strconv.FormatInt(t.StartFromNS, 10)
	q.parameters["from"] = strconv.FormatInt(t.FromNS[0], 10)
	q.parameters["to"] = strconv.FormatInt(t.ToNS, 10)
	return q
}

// least returns the largest of some durations that an exchange reached; 0 if it is shorter than all
// of them.
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

// field returns a field as text; empty if it is not wanted.
func field(wanted bool, expression string) string {
	if !wanted {
		return "''"
	}
	return "toString(" + textOf(expression) + ")"
}

// maxAttributeBytes bounds the answer if values of attributes are distinguished: there may be as
// many as exchanges, each of [rules.MaxGroupBytes].
const maxAttributeBytes = 32 << 20

// A row of a tally counts one kind, or it is one of these parts: the whole of a tenant, or the name
// of the server.
const partWhole, partServer = 1, 2

// Tally returns how many exchanges there are of each kind.
func (s *Source) Tally(ctx context.Context, t counting.TallyQuery) (answer counting.Tallies, err error) {
	q := tallyQuery(&s.mapping, t)
	most := t.Limit
	if t.NamesServer {
		most++
	}
	rows, err := s.conn.Query(s.bounded(ctx, q, most), q.sql)
	if err != nil {
		return answer, s.explain(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err reports every error
	type whole struct{ tenant, attribute string }
	surplus := map[whole]int64{}
	for rows.Next() {
		var part uint64
		var status string
		var y counting.Tally
		if err := rows.Scan(&part, &y.TenantID, &status, &y.Environment, &y.Application, &y.Route, &y.ErrorType, &y.Attribute, &y.Group, &y.LeastNS, &y.FromNS,
			&y.Observed, &y.NewestEndedNS, &y.NewestStartNS); err != nil {
			return answer, fmt.Errorf("clickhouse: read tally: %w", err)
		}
		switch part {
		case partServer:
			answer.Server = y.TenantID
			continue
		case partWhole:
			surplus[whole{y.TenantID, y.Attribute}] -= y.Observed
			continue
		}
		surplus[whole{y.TenantID, y.Attribute}] += y.Observed
		y.Status = rules.Status(status)
		answer.Tallies = append(answer.Tallies, y)
	}
	if err := rows.Err(); err != nil {
		return answer, s.explain(err)
	}
	for of, n := range surplus {
		if n != 0 && !slices.Contains(answer.Inexact, of.tenant) {
			answer.Inexact = append(answer.Inexact, of.tenant)
		}
	}
	return answer, nil
}

// endedQuery counts exchanges by when they ended. Its answer is one row, whatever there
// is.
func endedQuery(m *Mapping, a watch.ArrivalsQuery) query {
	q := query{parameters: map[string]string{
		"start": strconv.FormatInt(a.StartFromNS, 10), "from": strconv.FormatInt(a.FromNS, 10), "to": strconv.FormatInt(a.ToNS, 10),
		"cut": strconv.FormatInt(a.CutNS, 10), "width": strconv.FormatInt(a.WidthNS, 10), "longest": strconv.FormatInt(a.LongestNS, 10),
	}}
	q.sql = fmt.Sprintf(`
SELECT
    %[1]s,
    groupArray(tocsin_bucket),
    groupArray(tocsin_count),
    groupArray(tocsin_before)
FROM (
WITH %[2]s AS tocsin_ended
SELECT
    intDiv(tocsin_ended, {width:Int64}) * {width:Int64} AS tocsin_bucket,
    toInt64(uniqExact(%[3]s)) AS tocsin_count,
    toInt64(uniqExactIf(%[3]s, tocsin_ended < {cut:Int64})) AS tocsin_before
FROM %[4]s
WHERE %[5]s
  AND %[6]s >= fromUnixTimestamp64Nano({start:Int64}, 'UTC')
  AND %[6]s < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND tocsin_ended >= {from:Int64}
  AND tocsin_ended < {to:Int64}
  AND tocsin_ended - toUnixTimestamp64Nano(%[6]s) <= {longest:Int64}
  AND %[7]s
GROUP BY tocsin_bucket
)`, server, m.ended(), operand(m.ExecutionID), m.Table, m.rowsOf(q.parameters, a.Tenants, a.StartFromNS, a.ToNS), operand(m.StartTime),
		m.hasStatus([]rules.Status{rules.Completed, rules.Failed}))
	return q
}

// Arrivals returns how many exchanges ended in each bucket.
func (s *Source) Arrivals(ctx context.Context, a watch.ArrivalsQuery) (answer watch.Arrivals, err error) {
	var buckets, counts, before []int64
	if err := s.row(ctx, endedQuery(&s.mapping, a), &answer.Server, &buckets, &counts, &before); err != nil {
		return answer, err
	}
	if len(counts) != len(buckets) || len(before) != len(buckets) {
		return answer, fmt.Errorf("clickhouse: %d buckets with %d and %d counts", len(buckets), len(counts), len(before))
	}
	answer.Counts, answer.Before = make(map[int64]int64, len(buckets)), make(map[int64]int64, len(buckets))
	for i, bucket := range buckets {
		answer.Counts[bucket], answer.Before[bucket] = counts[i], before[i]
	}
	return answer, nil
}
