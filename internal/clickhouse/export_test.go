package clickhouse

import (
	"context"
	"maps"
	"slices"
	"strings"

	"tocsin/evaluator"
	"tocsin/rules"
)

// Reading is what ClickHouse reads for a scan, by its plan.
type Reading struct{ Parts, Granules uint64 }

// Read returns what ClickHouse reads for a scan.
func Read(ctx context.Context, s *Source, scan evaluator.Scan) (Reading, error) {
	q := scanQuery(&s.mapping, scan)
	var database, table string
	var rows uint64
	var read Reading
	err := s.conn.QueryRow(s.bounded(ctx, q, 1000), "EXPLAIN ESTIMATE "+q.sql).Scan(&database, &table, &read.Parts, &rows, &read.Granules)
	return read, err
}

// CountingPlan returns ClickHouse's plan for counting rows.
func CountingPlan(ctx context.Context, s *Source, tenantID string, fromNS, toNS int64) (plan string, err error) {
	q := rowsQuery(&s.mapping, tenantID, fromNS, toNS)
	rows, err := s.conn.Query(s.bounded(ctx, q, 1000), "EXPLAIN "+q.sql)
	if err != nil {
		return "", err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells all there is
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return "", err
		}
		plan += line + "\n"
	}
	return plan, rows.Err()
}

// TryWrite writes a row under the settings of a scan.
func TryWrite(ctx context.Context, s *Source) error {
	return s.conn.Exec(s.bounded(ctx, query{}, 1), "INSERT INTO exchanges (tenant_id, execution_id) VALUES ('a', 'b')")
}

// Statements returns the statements of a mapping with their parameters, the scan
// without its applications, its end and the id of its position first.
func Statements(m Mapping, scan evaluator.Scan, f evaluator.FingerprintQuery, scope rules.Scope, filter rules.Filter) ([]string, error) {
	cond, err := predicate(&m, scope, filter)
	if err != nil {
		return nil, err
	}
	wide := scan
	wide.Applications, wide.After.ExecutionID, wide.EndedSinceNS = nil, "", 0
	var texts []string
	for _, q := range []query{
		scanQuery(&m, wide),
		scanQuery(&m, scan),
		fingerprintQuery(&m, f),
		rowsQuery(&m, f.TenantID, f.FromNS, f.ToNS),
		countQuery(&m, CountQuery{TenantID: scan.TenantID, FromNS: f.FromNS, ToNS: f.ToNS, WidthNS: f.WidthNS}, cond),
		pageQuery(&m, page{tenantID: scan.TenantID, after: scan.After, beforeNS: scan.BeforeNS, limit: scan.Limit, terminal: m.terminal(), condition: cond}),
	} {
		text := strings.TrimPrefix(q.sql, "\n") + "\n"
		for _, name := range slices.Sorted(maps.Keys(q.parameters)) {
			text += "-- " + name + " = " + q.parameters[name] + "\n"
		}
		texts = append(texts, text)
	}
	return texts, nil
}
