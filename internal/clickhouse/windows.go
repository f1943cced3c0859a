package clickhouse

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tocsin/evaluator"
	"tocsin/evaluator/window"
	"tocsin/rules"
)

// maxStatement bounds the text of a statement and what its parameters hold, in
// bytes: ClickHouse parses 256 KiB by default, and over HTTP all of it is
// one address.
const maxStatement = 96 << 10

// ended returns when an exchange ended, its start where the source does not say, in
// nanoseconds.
func (m *Mapping) ended() string {
	return fmt.Sprintf("ifNull(%s, toUnixTimestamp64Nano(%s))", m.end(), operand(m.StartTime))
}

// windowRows is what several windows with one end have in common: from where a query for
// them reads, and to which of them a row belongs.
type windowRows struct {
	parameters map[string]string
	// from follows FROM: each row is joined with the numbers of the windows that it
	// counts in, and rows that count in none are left out.
	from string
	// group is the group in which a row counts in its window.
	group string
}

// windowRows expects tocsin_ended to stand for [Mapping.ended]. Further holds a condition
// for each window.
func (m *Mapping) windowRows(windows []window.Query, further func(b *builder, number int) string) (windowRows, error) {
	r := windowRows{parameters: map[string]string{}, group: m.groups(windows)}
	start, first := operand(m.StartTime), &windows[0]
	startFrom, endedFrom := first.StartFromNS, first.FromNS
	numbers, hits, tenants := make([]string, len(windows)), make([]string, len(windows)), make([]string, len(windows))
	for i := range windows {
		w := &windows[i]
		prefix := "w" + strconv.Itoa(i) + "_"
		matches, err := prefixed(m, prefix, w.Scope, w.Filter)
		if err != nil {
			return r, err
		}
		maps.Copy(r.parameters, matches.parameters)
		b := builder{prefix: prefix, parameters: r.parameters}
		b.and(m.tenant() + " = " + b.text("tenant", w.TenantID))
		b.and(fmt.Sprintf("%s >= fromUnixTimestamp64Nano(%s, 'UTC')", start, b.integer("start", w.StartFromNS)))
		b.and("tocsin_ended >= " + b.integer("from", w.FromNS))
		b.and(matches.sql)
		b.and(further(&b, i))
		startFrom, endedFrom = min(startFrom, w.StartFromNS), min(endedFrom, w.FromNS)
		numbers[i], tenants[i] = fmt.Sprintf("toUInt16(%d)", i), w.TenantID
		hits[i] = "if(" + strings.Join(b.conditions, "\n        AND ") + ", 1, 0)"
	}
	slices.Sort(tenants)
	b := builder{parameters: r.parameters}
	b.and(m.rowsOf(r.parameters, evaluator.Tenants{Names: slices.Compact(tenants)}, startFrom, first.ToNS))
	b.and(fmt.Sprintf("%s >= fromUnixTimestamp64Nano(%s, 'UTC')", start, b.integer("start", startFrom)))
	b.and(fmt.Sprintf("%s < fromUnixTimestamp64Nano(%s, 'UTC')", start, b.integer("to", first.ToNS)))
	b.and("tocsin_ended >= " + b.integer("from", endedFrom))
	b.and("tocsin_ended < {to:Int64}")
	b.and(m.anyOf(r.parameters, windows))
	r.from = fmt.Sprintf(`%s
ARRAY JOIN arrayFilter((tocsin_number, tocsin_hit) -> tocsin_hit, [%s], [
    %s]) AS tocsin_window
WHERE %s`, m.Table, strings.Join(numbers, ", "), strings.Join(hits, ",\n    "), strings.Join(b.conditions, "\n  AND "))
	return r, nil
}

// windowsQuery counts, for several windows with one end, the matching exchanges by
// group. A row that is there twice counts once.
func windowsQuery(m *Mapping, windows []window.Query) (query, error) {
	r, err := m.windowRows(windows, func(*builder, int) string { return "" })
	if err != nil {
		return query{}, fmt.Errorf("count window: %w", err)
	}
	r.parameters["limit"] = strconv.Itoa(windows[0].Limit)
	return query{parameters: r.parameters, sql: fmt.Sprintf(`
WITH %[1]s AS tocsin_ended
SELECT
    tocsin_window,
    %[2]s AS tocsin_group,
    toInt64(uniqExact(%[3]s)) AS tocsin_count,
    %[4]s
FROM %[5]s
GROUP BY tocsin_window, tocsin_group
ORDER BY tocsin_window, tocsin_count DESC, tocsin_group
LIMIT {limit:UInt64} BY tocsin_window`, m.ended(), r.group, operand(m.ExecutionID), m.newest(), r.from)}, nil
}

// newest returns when the newest of some exchanges ended, and when it began.
func (m *Mapping) newest() string {
	both := fmt.Sprintf("max((tocsin_ended, toUnixTimestamp64Nano(%s)))", operand(m.StartTime))
	return fmt.Sprintf("tupleElement(%[1]s, 1),\n    tupleElement(%[1]s, 2)", both)
}

// anyOf returns a condition that every row meets which counts in any of the
// windows: it is of a status, and where all of them name applications, routes
// or environments, of one of these.
func (m *Mapping) anyOf(parameters map[string]string, windows []window.Query) string {
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
func (m *Mapping) groups(windows []window.Query) string {
	kinds := make([]string, len(windows))
	for i := range windows {
		kinds[i] = "'" + string(windows[i].GroupBy) + "'"
	}
	kind := fmt.Sprintf("[%s][tocsin_window + 1]", strings.Join(kinds, ", "))
	expression := "''"
	for _, by := range []rules.GroupBy{rules.GroupByRoute, rules.GroupByApplication, rules.GroupByEnvironment, rules.GroupByErrorType} {
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
func (s *Source) CountWindows(ctx context.Context, windows []window.Query) ([][]window.Group, error) {
	if len(windows) == 0 {
		return nil, nil
	}
	q, err := windowsQuery(&s.mapping, windows)
	if err != nil {
		return nil, err
	}
	if middle := len(windows) / 2; middle > 0 && q.size() > maxStatement {
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
	groups := make([][]window.Group, len(windows))
	for rows.Next() {
		var number uint16
		var g window.Group
		if err := rows.Scan(&number, &g.Group, &g.Observed, &g.NewestEndedNS, &g.NewestStartNS); err != nil {
			return nil, fmt.Errorf("clickhouse: read group: %w", err)
		}
		groups[number] = append(groups[number], g)
	}
	if err := rows.Err(); err != nil {
		return nil, s.explain(err)
	}
	return groups, nil
}
