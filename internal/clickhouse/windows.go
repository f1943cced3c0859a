package clickhouse

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tocsin/evaluator"
	"tocsin/rules"
)

// maxStatement bounds the text of a statement and what its parameters hold, in
// bytes: ClickHouse parses 256 KiB by default, and over HTTP all of it is
// one address.
const maxStatement = 96 << 10

// windowsQuery counts, for several windows of one tenant and end, the matching
// exchanges by group. Each row is joined with the numbers of those windows
// that it counts in; what is then counted by number is what [groupQuery] would
// count for each.
func windowsQuery(m *Mapping, windows []evaluator.WindowQuery) (query, error) {
	first := &windows[0]
	q := query{parameters: map[string]string{}}
	start := operand(m.StartTime)
	ended := fmt.Sprintf("ifNull(%s, toUnixTimestamp64Nano(%s))", m.end(), start)
	fromNS := first.FromNS
	numbers, hits := make([]string, len(windows)), make([]string, len(windows))
	for i := range windows {
		w := &windows[i]
		prefix := "w" + strconv.Itoa(i) + "_"
		matches, err := prefixed(m, prefix, w.Scope, w.Filter)
		if err != nil {
			return query{}, fmt.Errorf("count window: %w", err)
		}
		maps.Copy(q.parameters, matches.parameters)
		q.parameters[prefix+"from"] = strconv.FormatInt(w.FromNS, 10)
		q.parameters[prefix+"ended_since"] = strconv.FormatInt(w.EndedSinceNS, 10)
		fromNS = min(fromNS, w.FromNS)
		numbers[i] = fmt.Sprintf("toUInt16(%d)", i)
		hits[i] = fmt.Sprintf(`if(%[1]s >= fromUnixTimestamp64Nano({%[2]sfrom:Int64}, 'UTC')
        AND tocsin_ended >= {%[2]sended_since:Int64}
        AND %[3]s, 1, 0)`, start, prefix, matches.sql)
	}
	q.sql = fmt.Sprintf(`
WITH %[9]s AS tocsin_ended
SELECT
    tocsin_window,
    %[1]s AS tocsin_group,
    toInt64(uniqExact(%[2]s)) AS tocsin_count,
    max(toUnixTimestamp64Nano(%[3]s))
FROM %[4]s
ARRAY JOIN arrayFilter((tocsin_number, tocsin_hit) -> tocsin_hit, [%[5]s], [
    %[6]s]) AS tocsin_window
WHERE %[7]s
  AND %[3]s >= fromUnixTimestamp64Nano({from:Int64}, 'UTC')
  AND %[3]s < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND %[8]s
GROUP BY tocsin_window, tocsin_group
ORDER BY tocsin_window, tocsin_count DESC, tocsin_group
LIMIT {limit:UInt64} BY tocsin_window`, m.groups(windows), operand(m.ExecutionID), start, m.Table,
		strings.Join(numbers, ", "), strings.Join(hits, ",\n    "),
		m.rows(q.parameters, first.TenantID, fromNS, first.ToNS), m.anyOf(q.parameters, windows), ended)
	q.parameters["from"] = strconv.FormatInt(fromNS, 10)
	q.parameters["to"] = strconv.FormatInt(first.ToNS, 10)
	q.parameters["limit"] = strconv.Itoa(first.Limit)
	return q, nil
}

// anyOf returns a condition that every row meets which counts in any of the
// windows: it is of a status, and where all of them name applications, routes
// or environments, of one of these.
func (m *Mapping) anyOf(parameters map[string]string, windows []evaluator.WindowQuery) string {
	b := builder{prefix: "any_", parameters: parameters}
	var statuses []rules.Status
	var scope rules.Scope
	for i := range windows {
		w := &windows[i]
		statuses = append(statuses, w.Filter.StatusesOrDefault()...)
		scope.Applications = union(i > 0, scope.Applications, w.Scope.Applications)
		scope.Routes = union(i > 0, scope.Routes, w.Scope.Routes)
		scope.Environments = union(i > 0, scope.Environments, w.Scope.Environments)
	}
	b.and(m.hasStatus(statuses))
	b.and(b.names(m.Application, "application", scope.Applications))
	b.and(b.names(m.Route, "route", scope.Routes))
	b.and(b.names(m.Environment, "environment", scope.Environments))
	return strings.Join(b.conditions, "\n  AND ")
}

// union returns names that hold all that either list does, none being no
// restriction; further says that there was a former list.
func union(further bool, former, names []string) []string {
	if len(names) == 0 || further && len(former) == 0 {
		return nil
	}
	all := slices.Concat(former, names)
	slices.Sort(all)
	return slices.Compact(all)
}

// groups returns the expression by which each of several windows groups.
func (m *Mapping) groups(windows []evaluator.WindowQuery) string {
	kinds := make([]string, len(windows))
	for i := range windows {
		kinds[i] = "'" + string(windows[i].GroupBy) + "'"
	}
	kind := fmt.Sprintf("[%s][tocsin_window + 1]", strings.Join(kinds, ", "))
	expression := "''"
	for _, by := range []rules.GroupBy{rules.GroupByRoute, rules.GroupByApplication, rules.GroupByEnvironment} {
		expression = fmt.Sprintf("if(%s = '%s', toString(%s), %s)", kind, by, m.group(by), expression)
	}
	return expression
}

// size returns how many bytes a statement and its parameters take.
func (q *query) size() int {
	size := len(q.sql)
	for name, value := range q.parameters {
		size += len(name) + len(value) + len("&param_=")
	}
	return size
}

// CountWindows returns the groups of each window that hold a matching exchange.
func (s *Source) CountWindows(ctx context.Context, windows []evaluator.WindowQuery) ([][]evaluator.GroupCount, error) {
	if len(windows) == 0 {
		return nil, nil
	}
	if len(windows) == 1 {
		groups, err := s.countWindow(ctx, windows[0])
		return [][]evaluator.GroupCount{groups}, err
	}
	q, err := windowsQuery(&s.mapping, windows)
	if err != nil {
		return nil, err
	}
	if q.size() > maxStatement {
		middle := len(windows) / 2
		left, err := s.CountWindows(ctx, windows[:middle])
		if err != nil {
			return nil, err
		}
		right, err := s.CountWindows(ctx, windows[middle:])
		return append(left, right...), err
	}
	rows, err := s.conn.Query(s.bounded(ctx, q, len(windows)*windows[0].Limit), q.sql)
	if err != nil {
		return nil, s.explain(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells all there is
	groups := make([][]evaluator.GroupCount, len(windows))
	for rows.Next() {
		var number uint16
		var g evaluator.GroupCount
		if err := rows.Scan(&number, &g.Group, &g.Observed, &g.NewestNS); err != nil {
			return nil, fmt.Errorf("clickhouse: read group: %w", err)
		}
		groups[number] = append(groups[number], g)
	}
	if err := rows.Err(); err != nil {
		return nil, s.explain(err)
	}
	return groups, nil
}
