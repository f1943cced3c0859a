package clickhouse

import (
	"cmp"
	"context"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/evaluator/source"
	"tocsin/evaluator/window/counting"
	"tocsin/rules"
)

// maxStatement bounds the size of a statement with its parameters, in bytes: ClickHouse parses 256
// KiB by default, and over HTTP all of it is one address.
const maxStatement = 96 << 10

// ended returns when an exchange ended, in nanoseconds; its start if the source has no ends.
func (m *Mapping) ended() string {
	return fmt.Sprintf("ifNull(%s, toUnixTimestamp64Nano(%s))", m.end(), operand(m.StartTime))
}

// windowRows is the common part of several windows with one end: from where a query for them reads,
// and which of them a row belongs to.
type windowRows struct {
	parameters map[string]string
	// from is the text after FROM. It joins each row with tocsin_code, once for each window in
	// which the row counts. A code is twice the number of the window, plus 2 if the row is observed
	// and plus 1 if it is what the observed rows are compared with. Rows that count in no window
	// are left out.
	from string
	// group is the group of a row in its window.
	group string
}

// What a code means.
const (
	codeWindow   = "toUInt16(intDiv(tocsin_code - 1, 2)) AS tocsin_window"
	codeObserved = "tocsin_code % 2 = 0"
)

// windowRows expects that tocsin_ended is [Mapping.ended]. If further is not nil, it returns a
// further condition for each window, and only observed rows count.
func (m *Mapping) windowRows(windows []counting.Query, further func(b *builder, number int) string) (windowRows, error) {
	r := windowRows{parameters: map[string]string{}}
	start, first := operand(m.StartTime), &windows[0]
	startFrom, endedFrom := first.StartFromNS, first.FromNS
	r.group = m.groups(r.parameters, windows)
	codes, tenants := make([]string, len(windows)), make([]string, len(windows))
	for i := range windows {
		w := &windows[i]
		b := builder{prefix: "w" + strconv.Itoa(i) + "_", parameters: r.parameters}
		b.and(m.tenant() + " = " + b.text("tenant", w.TenantID))
		b.and(fmt.Sprintf("%s >= fromUnixTimestamp64Nano(%s, 'UTC')", start, b.integer("start", w.StartFromNS)))
		b.and("tocsin_ended >= " + b.integer("from", w.FromNS))
		observed, err := b.measured(m, w)
		if err != nil {
			return r, err
		}
		code := strconv.Itoa(2*i + 2)
		switch {
		case further != nil:
			b.and(observed)
			b.and(further(&b, i))
		case observed != "":
			code = fmt.Sprintf("if(%s, %s, %d)", observed, code, 2*i+1)
		}
		startFrom, endedFrom = min(startFrom, w.StartFromNS), min(endedFrom, w.FromNS)
		codes[i], tenants[i] = "if("+strings.Join(b.conditions, "\n        AND ")+", "+code+", 0)", w.TenantID
	}
	slices.Sort(tenants)
	b := builder{parameters: r.parameters}
	b.and(m.rowsOf(r.parameters, source.Tenants{Names: slices.Compact(tenants)}, startFrom, first.ToNS))
	b.and(fmt.Sprintf("%s >= fromUnixTimestamp64Nano(%s, 'UTC')", start, b.integer("start", startFrom)))
	b.and(fmt.Sprintf("%s < fromUnixTimestamp64Nano(%s, 'UTC')", start, b.integer("to", first.ToNS)))
	b.and("tocsin_ended >= " + b.integer("from", endedFrom))
	b.and("tocsin_ended < {to:Int64}")
	b.and(m.anyOf(r.parameters, windows))
	r.from = fmt.Sprintf(`%s
ARRAY JOIN arrayFilter(tocsin_hit -> tocsin_hit > 0, [
    %s]) AS tocsin_code
WHERE %s`, m.Table, strings.Join(codes, ",\n    "), strings.Join(b.conditions, "\n  AND "))
	return r, nil
}

// measured adds the condition for what counts in a window. It returns the condition for the
// observed part, which is empty if all of it is observed.
func (b *builder) measured(m *Mapping, w *counting.Query) (observed string, err error) {
	filter := w.Filter
	if w.Mode == rules.RatioInWindow {
		filter = rules.Filter{Statuses: w.Statuses()}
		matches, err := prefixed(m, b.prefix+"observed_", rules.Scope{}, w.Filter)
		if err != nil {
			return "", err
		}
		maps.Copy(b.parameters, matches.parameters)
		observed = matches.sql
	}
	counts, err := prefixed(m, b.prefix, w.Scope, filter)
	if err != nil {
		return "", err
	}
	maps.Copy(b.parameters, counts.parameters)
	b.and(counts.sql)
	if w.Mode == rules.DurationInWindow {
		observed = m.duration() + " >= " + b.integer("least", w.LeastNS)
	}
	return observed, nil
}

// windowsQuery counts, by group, the observed exchanges and those that they are compared with, for
// several windows of one mode with one end. A duplicate row counts once.
func windowsQuery(m *Mapping, windows []counting.Query) (query, error) {
	r, err := m.windowRows(windows, nil)
	if err != nil {
		return query{}, fmt.Errorf("count window: %w", err)
	}
	r.parameters["limit"] = strconv.Itoa(limitOf(windows))
	if windows[0].Mode == rules.AbsentInWindow {
		return absentQuery(m, r), nil
	}
	if windows[0].Mode == rules.DurationInWindow {
		return durationsQuery(m, windows, r), nil
	}
	having, first := chosen(windows)
	columns := fmt.Sprintf("toInt64(uniqExact(%s)) AS tocsin_count,\n    toInt64(0), toInt64(0), toInt64(0), toInt64(0),\n    %s", operand(m.ExecutionID), m.newest("max", ""))
	if windows[0].Mode == rules.RatioInWindow {
		columns = fmt.Sprintf(`toInt64(uniqExactIf(%[1]s, %[2]s)) AS tocsin_count,
    toInt64(uniqExact(%[1]s)) AS tocsin_volume,
    toInt64(uniqExactIf(%[1]s, %[2]s AND tocsin_ended >= %[3]s)) AS tocsin_short_count,
    toInt64(uniqExactIf(%[1]s, tocsin_ended >= %[3]s)) AS tocsin_short_volume,
    toInt64(0),
    %[4]s`, operand(m.ExecutionID), codeObserved, perWindow(windows, shortFrom), m.newest("maxIf", ", "+codeObserved))
	}
	return query{parameters: r.parameters, sql: fmt.Sprintf(`
WITH %[1]s AS tocsin_ended
SELECT
    %[2]s,
    %[3]s AS tocsin_group,
    %[4]s
FROM %[5]s
GROUP BY tocsin_window, tocsin_group%[6]s
ORDER BY tocsin_window, %[7]stocsin_count DESC, tocsin_group
LIMIT {limit:UInt64} BY tocsin_window`, m.ended(), codeWindow, r.group, columns, r.from, having, first)}, nil
}

// noWindow is the number in the row that names the server.
const noWindow = math.MaxUint16

// absentQuery counts as windowsQuery does, and adds a row that names the server, because the server
// must be known even if it counts nothing.
func absentQuery(m *Mapping, r windowRows) query {
	return query{parameters: r.parameters, sql: fmt.Sprintf(`
SELECT
    tocsin_window, tocsin_group, tocsin_count,
    toInt64(0), toInt64(0), toInt64(0), toInt64(0), tocsin_ended_last, tocsin_start_last
FROM (
    WITH %[1]s AS tocsin_ended
    SELECT
        %[2]s,
        %[3]s AS tocsin_group,
        toInt64(uniqExact(%[4]s)) AS tocsin_count,
        max(tocsin_ended) AS tocsin_ended_last,
        max(toUnixTimestamp64Nano(%[5]s)) AS tocsin_start_last
    FROM %[6]s
    GROUP BY tocsin_window, tocsin_group
    ORDER BY tocsin_window, tocsin_count DESC, tocsin_group
    LIMIT {limit:UInt64} BY tocsin_window)
UNION ALL
SELECT toUInt16(%[7]d), %[8]s, toInt64(0), toInt64(0), toInt64(0), toInt64(0), toInt64(0), toInt64(0), toInt64(0)`,
		m.ended(), codeWindow, r.group, operand(m.ExecutionID), operand(m.StartTime), r.from, noWindow, server)}
}

// durationsQuery takes the longest duration of each exchange, and the percentile of these
// durations.
func durationsQuery(m *Mapping, windows []counting.Query, r windowRows) query {
	percentile := perWindow(windows, func(w *counting.Query) int64 { return int64(w.Percentile) })
	having, first := chosen(windows)
	return query{parameters: r.parameters, sql: fmt.Sprintf(`
SELECT
    tocsin_window,
    tocsin_group,
    toInt64(countIf(tocsin_observed)) AS tocsin_count,
    toInt64(count()) AS tocsin_volume,
    toInt64(0), toInt64(0),
    arraySort(groupArray(tocsin_longest))[intDiv(count() * %[1]s + 99, 100)],
    tupleElement(max(tocsin_newest), 1),
    tupleElement(max(tocsin_newest), 2)
FROM (
    WITH %[2]s AS tocsin_ended
    SELECT
        %[3]s,
        %[4]s AS tocsin_group,
        max(toInt64(least(%[5]s, 9223372036854775807))) AS tocsin_longest,
        max(%[6]s) AS tocsin_observed,
        maxIf((tocsin_ended, toUnixTimestamp64Nano(%[7]s)), %[6]s) AS tocsin_newest
    FROM %[8]s
    GROUP BY tocsin_window, tocsin_group, %[9]s)
GROUP BY tocsin_window, tocsin_group%[10]s
ORDER BY tocsin_window, %[11]stocsin_count DESC, tocsin_group
LIMIT {limit:UInt64} BY tocsin_window`, percentile, m.ended(), codeWindow, r.group, m.duration(), codeObserved, operand(m.StartTime), r.from, operand(m.ExecutionID),
		having, first)}
}

// chosen returns the clause that keeps the groups which some windows want, and the term of the order
// by which groups with an open alert come first. Both are empty if they have no effect. A group is
// recognised by its checksum: another group with the same one is returned as well.
func chosen(windows []counting.Query) (having, first string) {
	var bounds, opens []string
	bounded := false
	for i := range windows {
		w := &windows[i]
		of := "tocsin_window = " + strconv.Itoa(i)
		if w.Bound == nil {
			bounds = append(bounds, of)
			continue
		}
		bounded = true
		bounds = append(bounds, of+" AND "+reached(w.Bound))
		var sums []string
		hashed := false
		for _, key := range w.Open {
			if name, known := cursor.IDOf(key); known {
				sums = append(sums, strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(name))), 10))
			} else {
				hashed = true
			}
		}
		if len(sums) > 0 {
			opens = append(opens, of+" AND CRC32(tocsin_group) IN ("+strings.Join(sums, ", ")+")")
		}
		if hashed {
			opens = append(opens, of+" AND length(tocsin_group) > "+strconv.Itoa(cursor.MaxKeyBytes/4)) // no shorter one is hashed
		}
	}
	if len(opens) > 0 {
		first = "(" + strings.Join(opens, " OR ") + ") DESC, "
	}
	if bounded {
		having = "\nHAVING " + strings.Join(append(bounds, opens...), "\n    OR ")
	}
	return having, first
}

// reached returns the condition for a group that reaches a bound, as [alerts.Window.Reached].
func reached(w *alerts.Window) string {
	conditions := []string{fmt.Sprintf("tocsin_count >= %d", w.Least())}
	switch w.Mode { //nolint:exhaustive // the others count
	case rules.RatioInWindow:
		conditions = append(conditions, fmt.Sprintf("tocsin_volume >= %d", w.MinVolume), fmt.Sprintf("tocsin_count * 100000 >= %d * tocsin_volume", rules.Thousandths(w.Percent)))
		if w.ShortWindowSeconds > 0 {
			conditions = append(conditions, "tocsin_short_count > 0", fmt.Sprintf("tocsin_short_count * 100000 >= %d * tocsin_short_volume", rules.Thousandths(w.Percent)))
		}
	case rules.DurationInWindow:
		conditions = append(conditions, fmt.Sprintf("tocsin_volume >= %d", w.MinVolume), fmt.Sprintf("tocsin_count > tocsin_volume - intDiv(tocsin_volume * %d + 99, 100)", w.Percentile))
	}
	return strings.Join(conditions, " AND ")
}

// limitOf returns the largest limit of some windows.
func limitOf(windows []counting.Query) (most int) {
	for i := range windows {
		most = max(most, windows[i].Limit)
	}
	return most
}

// perWindow returns an expression for a number that each window has.
func perWindow(windows []counting.Query, of func(w *counting.Query) int64) string {
	numbers := make([]string, len(windows))
	for i := range windows {
		numbers[i] = fmt.Sprintf("toInt64(%d)", of(&windows[i]))
	}
	return "[" + strings.Join(numbers, ", ") + "][tocsin_window + 1]"
}

// shortFrom returns when the short window begins; never, if there is none.
func shortFrom(w *counting.Query) int64 {
	if w.ShortFromNS == 0 {
		return math.MaxInt64
	}
	return w.ShortFromNS
}

// newest returns when the newest of some exchanges ended, and when it began.
func (m *Mapping) newest(most, condition string) string {
	both := fmt.Sprintf("%s((tocsin_ended, toUnixTimestamp64Nano(%s))%s)", most, operand(m.StartTime), condition)
	return fmt.Sprintf("tupleElement(%[1]s, 1),\n    tupleElement(%[1]s, 2)", both)
}

// anyOf returns a condition that is true for every row that counts in any of the windows. It tests
// the status. If all windows name applications, routes or environments, it also tests these.
func (m *Mapping) anyOf(parameters map[string]string, windows []counting.Query) string {
	b := builder{prefix: "any_", parameters: parameters}
	var statuses []rules.Status
	var scope rules.Scope
	for i := range windows {
		w := &windows[i]
		statuses = append(statuses, w.Statuses()...)
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

// union returns names that contain those of both lists; no names mean no restriction. further says
// that former is a list.
func union(further bool, former, names []string) []string {
	if len(names) == 0 || further && len(former) == 0 {
		return nil
	}
	all := slices.Concat(former, names)
	slices.Sort(all)
	return slices.Compact(all)
}

// groups returns the expression by which each of several windows groups.
func (m *Mapping) groups(parameters map[string]string, windows []counting.Query) string {
	kinds, keys, byAttribute := make([]string, len(windows)), make([]string, len(windows)), false
	for i := range windows {
		by := windows[i].Grouping
		kinds[i], keys[i] = "'"+string(by.By)+"'", "''"
		if by.By == rules.GroupByAttribute {
			b := builder{prefix: "w" + strconv.Itoa(i) + "_", parameters: parameters}
			keys[i], byAttribute = b.text("group_key", by.Attribute), true
		}
	}
	kind := fmt.Sprintf("[%s][tocsin_window + 1]", strings.Join(kinds, ", "))
	expression := "''"
	for _, by := range rules.GroupBys() {
		if by != rules.GroupByAttribute || byAttribute {
			key := "[" + strings.Join(keys, ", ") + "][tocsin_window + 1]"
			expression = fmt.Sprintf("if(%s = '%s', toString(%s), %s)", kind, by, m.group(by, key), expression)
		}
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

// CountWindows returns the groups of each window that contain a counted exchange.
func (s *Source) CountWindows(ctx context.Context, windows []counting.Query) (counting.Counted, error) {
	answer := counting.Counted{Groups: make([][]counting.Group, len(windows))}
	for _, mode := range []rules.FireMode{rules.CountInWindow, rules.RatioInWindow, rules.DurationInWindow, rules.AbsentInWindow} {
		var some []counting.Query
		var numbers []int
		for i := range windows {
			if cmp.Or(windows[i].Mode, rules.CountInWindow) == mode {
				some, numbers = append(some, windows[i]), append(numbers, i)
			}
		}
		if len(some) == 0 {
			continue
		}
		counted, err := s.countWindows(ctx, some)
		if err != nil {
			return counting.Counted{}, err
		}
		for i, number := range numbers {
			answer.Groups[number] = counted.Groups[i]
		}
		answer.Server = counted.Server
	}
	return answer, nil
}

// middleOf returns where some windows may be split, which another server may answer from there on; 0 if
// they must not be.
func middleOf(windows []counting.Query) int {
	middle := len(windows) / 2
	if middle > 0 && windows[middle].Whole {
		middle = (middle + 1) % len(windows)
	}
	return middle
}

// countWindows counts windows of one mode.
func (s *Source) countWindows(ctx context.Context, windows []counting.Query) (answer counting.Counted, err error) {
	q, err := windowsQuery(&s.mapping, windows)
	if err != nil {
		return answer, err
	}
	if middle := middleOf(windows); middle > 0 && q.size() > maxStatement {
		left, err := s.countWindows(ctx, windows[:middle])
		if err != nil {
			return answer, err
		}
		right, err := s.countWindows(ctx, windows[middle:])
		if left.Server == right.Server {
			answer.Server = left.Server
		}
		answer.Groups = append(left.Groups, right.Groups...)
		return answer, err
	}
	rows, err := s.conn.Query(s.bounded(ctx, q, len(windows)*limitOf(windows)+1), q.sql)
	if err != nil {
		return answer, s.explain(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err reports every error
	answer.Groups = make([][]counting.Group, len(windows))
	for rows.Next() {
		var number uint16
		var g counting.Group
		if err := rows.Scan(&number, &g.Group, &g.Observed, &g.Volume, &g.ShortObserved, &g.ShortVolume, &g.DurationNS, &g.NewestEndedNS, &g.NewestStartNS); err != nil {
			return answer, fmt.Errorf("clickhouse: read group: %w", err)
		}
		if number == noWindow {
			answer.Server = g.Group
			continue
		}
		answer.Groups[number] = append(answer.Groups[number], g)
	}
	if err := rows.Err(); err != nil {
		return answer, s.explain(err)
	}
	if windows[0].Mode == rules.AbsentInWindow {
		for _, groups := range answer.Groups {
			// A UNION ALL has no defined order.
			slices.SortFunc(groups, func(a, b counting.Group) int {
				return cmp.Or(cmp.Compare(b.Observed, a.Observed), strings.Compare(a.Group, b.Group))
			})
		}
	}
	return answer, nil
}
