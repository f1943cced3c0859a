package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"tocsin/cursor"
	"tocsin/internal/fault"
	"tocsin/rules"
)

// Search and facets are requested by people. They are limited to one tenant and a time range, and
// every value in them is a parameter.

// searchQuery reads backwards from a position. It returns a duplicate row once.
func searchQuery(m *Mapping, s rules.ExchangeQuery, cond condition) query {
	start, id := operand(m.StartTime), operand(m.ExecutionID)
	q := query{parameters: maps.Clone(cond.parameters)}
	before := cursor.Position{StartTimeNS: s.ToNS}
	if s.Before != nil {
		before = *s.Before
	}
	q.sql = fmt.Sprintf(`
SELECT
    %[1]s
FROM %[2]s
WHERE %[3]s
  AND %[4]s >= fromUnixTimestamp64Nano({from:Int64}, 'UTC')
  AND (%[4]s < fromUnixTimestamp64Nano({before:Int64}, 'UTC')
       OR (%[4]s = fromUnixTimestamp64Nano({before:Int64}, 'UTC') AND %[5]s < unhex({before_id:String})))
  AND %[6]s
ORDER BY %[4]s DESC, %[5]s DESC
LIMIT 1 BY %[4]s, %[5]s
LIMIT {limit:UInt64}`, strings.Join(m.columns(), ",\n    "), m.Table, m.rowsOf(q.parameters, one(s.TenantID), s.FromNS, before.StartTimeNS+1),
		start, id, cond.sql)
	q.parameters["from"] = strconv.FormatInt(s.FromNS, 10)
	q.parameters["before"] = strconv.FormatInt(before.StartTimeNS, 10)
	q.parameters["before_id"] = hexadecimal(before.ExecutionID)
	q.parameters["limit"] = strconv.Itoa(s.Limit)
	return q
}

// resultBytes is what ClickHouse says if an answer has more bytes than max_result_bytes, and not if a profile limits what is
// read or sorted.
const resultBytes = "Limit for result exceeded, max bytes"

// Search returns the matching terminal exchanges, newest first. If several are larger than a scan may hold, it refuses the limit.
func (s *Source) Search(ctx context.Context, eq rules.ExchangeQuery) ([]rules.Exchange, error) {
	matches, err := predicate(&s.mapping, eq.Scope, eq.Filter)
	if err != nil {
		return nil, fmt.Errorf("search exchanges: %w", err)
	}
	if eq.ExecutionID != "" {
		b := builder{parameters: matches.parameters}
		matches.sql += "\n  AND " + operand(s.mapping.ExecutionID) + " = " + b.text("execution", eq.ExecutionID)
	}
	q := searchQuery(&s.mapping, eq, matches)
	if eq.Limit > 1 {
		q.maxBytes = s.scanBytes
	}
	found, err := s.exchanges(ctx, q, eq.TenantID, eq.Limit)
	if refusal, ok := errors.AsType[*RefusedError](err); ok && refusal.Code == tooManyRowsOrBytes && strings.Contains(refusal.Text, resultBytes) {
		return nil, fault.New(fault.Invalid, "the exchanges found have more than %d MiB together, with their messages and attributes; search a shorter time, or ask for fewer", s.scanBytes>>20)
	}
	return found, err
}

// Exchange returns the exchange at a position, and whether it exists.
func (s *Source) Exchange(ctx context.Context, tenant string, at cursor.Position) (rules.Exchange, bool, error) {
	found, err := s.Search(ctx, rules.ExchangeQuery{
		TenantID: tenant, FromNS: at.StartTimeNS, ToNS: at.StartTimeNS + 1, Limit: 1,
		// The smallest text after an id is the id and a zero byte.
		Before: &cursor.Position{StartTimeNS: at.StartTimeNS, ExecutionID: at.ExecutionID + "\x00"},
		Filter: rules.Filter{Statuses: []rules.Status{rules.Completed, rules.Failed}},
	})
	if err != nil || len(found) == 0 || found[0].ExecutionID != at.ExecutionID {
		return rules.Exchange{}, false, err
	}
	return found[0], true, nil
}

// facetQuery counts the values of a field.
func facetQuery(m *Mapping, f rules.FacetQuery, cond condition) query {
	q := query{parameters: maps.Clone(cond.parameters)}
	start := operand(m.StartTime)
	q.sql = fmt.Sprintf(`
SELECT %[1]s AS tocsin_value, count()
FROM %[2]s
WHERE %[3]s
  AND %[4]s >= fromUnixTimestamp64Nano({from:Int64}, 'UTC')
  AND %[4]s < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND %[5]s
  AND startsWith(lowerUTF8(tocsin_value), lowerUTF8(unhex({prefix:String})))
  AND tocsin_value != ''
GROUP BY tocsin_value
ORDER BY count() DESC, tocsin_value
LIMIT {limit:UInt64}`, m.facet(f.Field), m.Table, m.rowsOf(q.parameters, one(f.TenantID), f.FromNS, f.ToNS), start, cond.sql)
	q.parameters["from"] = strconv.FormatInt(f.FromNS, 10)
	q.parameters["to"] = strconv.FormatInt(f.ToNS, 10)
	q.parameters["prefix"] = hexadecimal(f.Prefix)
	q.parameters["limit"] = strconv.Itoa(f.Limit)
	return q
}

// facet returns the expression of a facet's values.
func (m *Mapping) facet(f rules.Facet) string {
	switch f {
	case rules.FacetEnvironment:
		return operand(m.Environment)
	case rules.FacetApplication:
		return operand(m.Application)
	case rules.FacetRoute:
		return operand(m.Route)
	case rules.FacetErrorType:
		return textOf(m.ErrorType)
	case rules.FacetAttribute:
		return "arrayJoin(mapKeys(" + m.attributes() + "))"
	}
	return "''"
}

// Facet returns the most frequent values of a field, with how often they occur.
func (s *Source) Facet(ctx context.Context, f rules.FacetQuery) ([]rules.FacetValue, error) {
	matches, err := predicate(&s.mapping, f.Scope, rules.Filter{Statuses: []rules.Status{rules.Completed, rules.Failed}})
	if err != nil {
		return nil, fmt.Errorf("count values: %w", err)
	}
	q := facetQuery(&s.mapping, f, matches)
	rows, err := s.conn.Query(s.bounded(ctx, q, f.Limit), q.sql)
	if err != nil {
		return nil, s.explain(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err reports every error
	var values []rules.FacetValue
	for rows.Next() {
		var v rules.FacetValue
		var n uint64
		if err := rows.Scan(&v.Value, &n); err != nil {
			return nil, fmt.Errorf("clickhouse: read value: %w", err)
		}
		v.Count = int64(n)
		values = append(values, v)
	}
	if err := rows.Err(); err != nil {
		return nil, s.explain(err)
	}
	return values, nil
}

// durationQuery reads only the newest exchanges, in the order of the table. A duration that does
// not fit into an Int64 counts as the longest, as in a scan.
func durationQuery(m *Mapping, d rules.DurationQuery, cond condition) query {
	q := query{parameters: maps.Clone(cond.parameters)}
	start := operand(m.StartTime)
	q.sql = fmt.Sprintf(`
SELECT count(), toInt64(quantileExact(0.5)(tocsin_duration)), toInt64(quantileExact(0.95)(tocsin_duration))
FROM (
    SELECT least(%[1]s, 9223372036854775807) AS tocsin_duration
    FROM %[2]s
    WHERE %[3]s
      AND %[4]s >= fromUnixTimestamp64Nano({from:Int64}, 'UTC')
      AND %[4]s < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
      AND %[5]s
    ORDER BY %[4]s DESC
    LIMIT {limit:UInt64}
)`, m.duration(), m.Table, m.rowsOf(q.parameters, one(d.TenantID), d.FromNS, d.ToNS), start, cond.sql)
	q.parameters["from"] = strconv.FormatInt(d.FromNS, 10)
	q.parameters["to"] = strconv.FormatInt(d.ToNS, 10)
	q.parameters["limit"] = strconv.Itoa(d.Limit)
	return q
}

// named adds the condition that a value is a name, unless that is empty. A * stands for itself.
func (b *builder) named(expression, parameter, name string) {
	if name != "" {
		b.and(b.in(operand(expression), parameter, []string{name}))
	}
}

// Durations returns how long the newest completed exchanges of a route took.
func (s *Source) Durations(ctx context.Context, d rules.DurationQuery) (rules.Durations, error) {
	m := &s.mapping
	b := builder{parameters: map[string]string{}}
	b.and(m.hasStatus([]rules.Status{rules.Completed}))
	b.named(m.Application, "application", d.Application)
	b.named(m.Route, "route", d.Route)
	b.named(m.Environment, "environment", d.Environment)
	q := durationQuery(m, d, b.condition())
	var n uint64
	var found rules.Durations
	if err := s.conn.QueryRow(s.bounded(ctx, q, 1), q.sql).Scan(&n, &found.MedianNS, &found.P95NS); err != nil {
		return rules.Durations{}, s.explain(err)
	}
	found.Exchanges = int64(n)
	return found, nil
}
