package clickhouse

import (
	"context"
	"fmt"
	"strconv"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"tocsin/evaluator/reconcile"
	"tocsin/evaluator/window/counting"
	"tocsin/rules"
)

// The reconciliation measures windows with its own statements: one window at a time, each exchange
// once, without tallies. It shares with the evaluation only the definitions of a condition, a group
// and an end.

// windowCondition returns the conditions for rows that count in a window; observed is the condition
// for those that are observed.
func (m *Mapping) windowCondition(w *counting.Query) (b builder, observed string, err error) {
	b = builder{parameters: map[string]string{}}
	start := operand(m.StartTime)
	b.and(m.rowsOf(b.parameters, one(w.TenantID), w.StartFromNS, w.ToNS))
	b.and(start + " >= fromUnixTimestamp64Nano(" + b.integer("start", w.StartFromNS) + ", 'UTC')")
	b.and(start + " < fromUnixTimestamp64Nano(" + b.integer("to", w.ToNS) + ", 'UTC')")
	b.and("tocsin_ended >= " + b.integer("from", w.FromNS))
	b.and("tocsin_ended < {to:Int64}")
	if observed, err = b.measured(m, w); err != nil {
		return b, "", fmt.Errorf("measure window: %w", err)
	}
	if observed == "" {
		observed = "true"
	}
	return b, observed, nil
}

// groupOf returns the expression by which a window groups.
func (b *builder) groupOf(m *Mapping, by rules.Grouping) string {
	key := ""
	if by.By == rules.GroupByAttribute {
		key = b.text("group_key", by.Attribute)
	}
	return "toString(" + m.group(by.By, key) + ")"
}

// measureQuery measures one window by group.
func measureQuery(m *Mapping, w *counting.Query) (query, error) {
	b, observed, err := m.windowCondition(w)
	if err != nil {
		return query{}, err
	}
	short, group := b.integer("short", shortFrom(w)), b.groupOf(m, w.Grouping)
	b.parameters["limit"] = strconv.Itoa(w.Limit)
	cond := b.condition()
	return query{parameters: cond.parameters, sql: fmt.Sprintf(`
SELECT
    tocsin_group,
    toInt64(countIf(tocsin_observed)) AS tocsin_count,
    toInt64(count()),
    toInt64(countIf(tocsin_observed AND tocsin_last >= %[1]s)),
    toInt64(countIf(tocsin_last >= %[1]s)),
    arraySort(groupArray(tocsin_longest))[intDiv(count() * %[2]d + 99, 100)]
FROM (
    WITH %[3]s AS tocsin_ended
    SELECT
        %[4]s AS tocsin_group,
        max(%[5]s) AS tocsin_observed,
        max(tocsin_ended) AS tocsin_last,
        max(toInt64(least(%[6]s, 9223372036854775807))) AS tocsin_longest
    FROM %[7]s
    WHERE %[8]s
    GROUP BY tocsin_group, %[9]s)
GROUP BY tocsin_group
ORDER BY tocsin_count DESC, tocsin_group
LIMIT {limit:UInt64}`, short, w.Percentile, m.ended(), group, observed, m.duration(), m.Table, cond.sql, operand(m.ExecutionID))}, nil
}

// Measure measures one window by group, the groups with the most observed exchanges first.
func (s *Source) Measure(ctx context.Context, w counting.Query) ([]counting.Group, error) {
	q, err := measureQuery(&s.mapping, &w)
	if err != nil {
		return nil, err
	}
	var list []counting.Group
	err = s.each(ctx, q, w.Limit, func(rows driver.Rows) error {
		var g counting.Group
		err := rows.Scan(&g.Group, &g.Observed, &g.Volume, &g.ShortObserved, &g.ShortVolume, &g.DurationNS)
		list = append(list, g)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("measure window: %w", err)
	}
	return list, nil
}

// cellsQuery counts the exchanges that ended in each cell of a range.
func cellsQuery(m *Mapping, c *reconcile.CellsQuery) (query, error) {
	b, observed, err := m.windowCondition(&c.Query)
	if err != nil {
		return query{}, err
	}
	group := b.groupOf(m, c.Grouping)
	sure := "tocsin_ended - toUnixTimestamp64Nano(" + operand(m.StartTime) + ") <= " + b.integer("sure", c.SureNS)
	width := b.integer("width", c.WidthNS)
	b.parameters["limit"] = strconv.Itoa(c.Limit)
	cond := b.condition()
	return query{parameters: cond.parameters, sql: fmt.Sprintf(`
WITH %[1]s AS tocsin_ended
SELECT
    %[2]s AS tocsin_group,
    toInt64(intDiv(tocsin_ended - {from:Int64}, %[3]s)) AS tocsin_cell,
    toInt64(uniqExactIf(%[4]s, (%[5]s) AND %[6]s)),
    toInt64(uniqExactIf(%[4]s, %[6]s)),
    toInt64(uniqExactIf(%[4]s, %[5]s)),
    toInt64(uniqExact(%[4]s))
FROM %[7]s
WHERE %[8]s
GROUP BY tocsin_group, tocsin_cell
ORDER BY tocsin_group, tocsin_cell
LIMIT {limit:UInt64}`, m.ended(), group, width, operand(m.ExecutionID), sure, observed, m.Table, cond.sql)}, nil
}

// Cells counts the exchanges that ended in each cell of a range, by group, in order.
func (s *Source) Cells(ctx context.Context, c reconcile.CellsQuery) ([]reconcile.Cell, error) {
	q, err := cellsQuery(&s.mapping, &c)
	if err != nil {
		return nil, err
	}
	var list []reconcile.Cell
	err = s.each(ctx, q, c.Limit, func(rows driver.Rows) error {
		var cell reconcile.Cell
		err := rows.Scan(&cell.Group, &cell.Number, &cell.Sure.Observed, &cell.Possible.Observed, &cell.Sure.Volume, &cell.Possible.Volume)
		list = append(list, cell)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("count by time: %w", err)
	}
	return list, nil
}

// Older reports whether the source has an exchange of a tenant that began before an instant.
func (s *Source) Older(ctx context.Context, tenantID string, beforeNS int64) (bool, error) {
	m := &s.mapping
	b := builder{parameters: map[string]string{}}
	b.and(m.rowsOf(b.parameters, one(tenantID), 0, beforeNS))
	b.and(operand(m.StartTime) + " < fromUnixTimestamp64Nano(" + b.integer("before", beforeNS) + ", 'UTC')")
	cond, found := b.condition(), false
	q := query{parameters: cond.parameters, sql: fmt.Sprintf("SELECT toUInt8(1) FROM %s WHERE %s LIMIT 1", m.Table, cond.sql)}
	err := s.each(ctx, q, 1, func(rows driver.Rows) error {
		found = true
		return rows.Scan(new(uint8))
	})
	if err != nil {
		return false, fmt.Errorf("look for older exchanges: %w", err)
	}
	return found, nil
}
