package clickhouse

import (
	"context"
	"maps"
	"slices"
	"strings"

	"tocsin/cursor"
	"tocsin/evaluator/source"
	"tocsin/rules"
)

// Reading is what ClickHouse reads for a scan, according to its plan.
type Reading struct{ Parts, Granules uint64 }

// Read returns what ClickHouse reads for a scan.
func Read(ctx context.Context, s *Source, scan source.Scan) (Reading, error) {
	p, err := scanned(&s.mapping, scan)
	if err != nil {
		return Reading{}, err
	}
	q := pageQuery(&s.mapping, p)
	var database, table string
	var rows uint64
	var read Reading
	err = s.conn.QueryRow(s.bounded(ctx, q, 1000), "EXPLAIN ESTIMATE "+q.sql).Scan(&database, &table, &read.Parts, &rows, &read.Granules)
	return read, err
}

// CountingPlan returns ClickHouse's plan for counting rows.
func CountingPlan(ctx context.Context, s *Source, rq source.RowCountQuery) (plan string, err error) {
	q := rowCountQuery(&s.mapping, rq, s.sortedByStart(ctx))
	rows, err := s.conn.Query(s.bounded(ctx, q, 1000), "EXPLAIN "+q.sql)
	if err != nil {
		return "", err
	}
	defer rows.Close() //nolint:errcheck // rows.Err reports every error
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return "", err
		}
		plan += line + "\n"
	}
	return plan, rows.Err()
}

// TryWrite tries to write a row with the settings of a scan.
func TryWrite(ctx context.Context, s *Source) error {
	return s.conn.Exec(s.bounded(ctx, query{}, 1), "INSERT INTO exchanges (tenant_id, execution_id) VALUES ('a', 'b')")
}

// Statements returns the statements of a mapping with their parameters. The scan comes first
// without its applications, its end and the id of its position.
func Statements(m Mapping, scan source.Scan, o source.ObserveQuery, narrow source.Narrowing) ([]string, error) {
	wide, matching := scan, scan
	wide.Applications, wide.After.ExecutionID, wide.EndedSinceNS = nil, "", 0
	matching.Narrow = &narrow
	var queries []query
	for _, s := range []source.Scan{wide, scan, matching} {
		p, err := scanned(&m, s)
		if err != nil {
			return nil, err
		}
		queries = append(queries, pageQuery(&m, p))
	}
	recent := o
	recent.ToNS, recent.SettleNS = 0, 1_000_000_000
	recent.Statuses = []rules.Status{rules.Failed}
	counts := source.RowCountQuery{Tenants: o.Tenants, Ranges: []cursor.Range{{FromNS: o.FromNS, ToNS: o.ToNS}, {FromNS: o.ToNS, ToNS: o.ToNS + 5}}}
	queries = append(queries, observeQuery(&m, o), observeQuery(&m, recent), rowCountQuery(&m, counts, false), rowCountQuery(&m, counts, true))
	texts := make([]string, len(queries))
	for i, q := range queries {
		texts[i] = strings.TrimPrefix(q.sql, "\n") + "\n"
		for _, name := range slices.Sorted(maps.Keys(q.parameters)) {
			texts[i] += "-- " + name + " = " + q.parameters[name] + "\n"
		}
	}
	return texts, nil
}

// TenantParameters returns the parameters of the condition that a row belongs to some tenants.
func TenantParameters(m Mapping, of source.Tenants) map[string]string { //nolint:gocritic // a test copies once
	parameters := map[string]string{}
	m.tenants(parameters, of)
	return parameters
}
