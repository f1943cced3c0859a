package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"tocsin/evaluator/resolution"
	"tocsin/rules"
)

// maxCompleted bounds the keys of one answer.
const maxCompleted = 50_000

// completedQuery finds, for each key, the completed exchange that began last.
func completedQuery(m *Mapping, cq resolution.Query) query {
	b := builder{parameters: map[string]string{}}
	start := operand(m.StartTime)
	value := textOf(m.CorrelationID)
	if cq.Attribute != "" {
		value = attributeOf(m, b.text("attribute", cq.Attribute))
	}
	place := textOf(m.Environment) + ", " + textOf(m.Application) + ", " + textOf(m.Route)
	b.and(m.rowsOf(b.parameters, one(cq.TenantID), cq.FromNS, cq.ToNS))
	b.and(start + " >= fromUnixTimestamp64Nano(" + b.integer("from", cq.FromNS) + ", 'UTC')")
	b.and(start + " < fromUnixTimestamp64Nano(" + b.integer("to", cq.ToNS) + ", 'UTC')")
	b.and(m.hasStatus([]rules.Status{rules.Completed}))
	if len(cq.Routes) > 0 {
		b.and(textOf(m.Route) + " IN " + b.set("routes", cq.Routes))
	}
	b.and("tocsin_value IN " + b.set("values", cq.Values))
	cond := b.condition()
	return query{parameters: cond.parameters, sql: fmt.Sprintf(`
WITH %[1]s AS tocsin_value
SELECT
    %[2]s,
    tocsin_value,
    toUnixTimestamp64Nano(max(%[3]s)),
    argMax(%[4]s, %[3]s)
FROM %[5]s
WHERE %[6]s
GROUP BY %[2]s, tocsin_value
LIMIT %[7]s`, value, place, start, operand(m.ExecutionID), m.Table, cond.sql, strconv.Itoa(maxCompleted+1))}
}

// set returns a set of texts as one parameter.
func (b *builder) set(name string, texts []string) string {
	list := make([]string, len(texts))
	for i, text := range texts {
		list[i] = "'" + hexadecimal(text) + "'"
	}
	name = b.prefix + name
	b.parameters[name] = "[" + strings.Join(list, ",") + "]"
	return "(SELECT unhex(arrayJoin({" + name + ":Array(String)})))"
}

// LastCompleted returns, for each key with one of the values, the completed exchange that began
// last. If the statement would be too long, it asks for halves of the values.
func (s *Source) LastCompleted(ctx context.Context, q resolution.Query) ([]resolution.Completed, error) {
	if routes := (&query{parameters: map[string]string{"routes": strings.Join(q.Routes, "")}}).size(); 2*routes > maxStatement/2 {
		q.Routes = nil // the answer names the route of each exchange
	}
	asked := completedQuery(&s.mapping, q)
	if asked.size() > maxStatement && len(q.Values) > 1 {
		var all []resolution.Completed
		for half := range slices.Chunk(q.Values, (len(q.Values)+1)/2) {
			part := q
			part.Values = half
			found, err := s.LastCompleted(ctx, part)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
		return all, nil
	}
	var list []resolution.Completed
	err := s.each(ctx, asked, maxCompleted, func(rows driver.Rows) error {
		var c resolution.Completed
		err := rows.Scan(&c.Key.Environment, &c.Key.Application, &c.Key.Route, &c.Key.Value, &c.StartTimeNS, &c.ExecutionID)
		list = append(list, c)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find completed exchanges: %w", err)
	}
	return list, nil
}
