package clickhouse

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tocsin/evaluator"
	"tocsin/rules"
)

// Granules returns how many granules ClickHouse reads for a scan, by its plan.
func Granules(ctx context.Context, s *Source, scan evaluator.Scan) (int, string, error) {
	q := scanQuery(&s.mapping, scan)
	rows, err := s.conn.Query(s.bounded(ctx, q, 1000), "EXPLAIN indexes = 1 "+q.sql)
	if err != nil {
		return 0, "", err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells all there is
	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return 0, "", err
		}
		plan.WriteString(line + "\n")
	}
	if err := rows.Err(); err != nil {
		return 0, "", err
	}
	// The last index of the plan is the primary key.
	all := regexp.MustCompile(`Granules: (\d+)/`).FindAllStringSubmatch(plan.String(), -1)
	if len(all) == 0 {
		return 0, plan.String(), fmt.Errorf("no granules in the plan:\n%s", plan.String())
	}
	n, err := strconv.Atoi(all[len(all)-1][1])
	return n, plan.String(), err
}

// TryWrite writes a row under the settings of a scan.
func TryWrite(ctx context.Context, s *Source) error {
	return s.conn.Exec(s.bounded(ctx, query{}, 1), "INSERT INTO exchanges (tenant_id, execution_id) VALUES ('a', 'b')")
}

// Statements returns the statements of a mapping with their parameters, the scan
// without its applications first.
func Statements(m Mapping, scan evaluator.Scan, f evaluator.FingerprintQuery, scope rules.Scope, filter rules.Filter) ([]string, error) {
	cond, err := predicate(&m, scope, filter)
	if err != nil {
		return nil, err
	}
	wide := scan
	wide.Applications = nil
	var texts []string
	for _, q := range []query{
		scanQuery(&m, wide),
		scanQuery(&m, scan),
		fingerprintQuery(&m, f),
		countQuery(&m, CountQuery{TenantID: scan.TenantID, FromNS: f.FromNS, ToNS: f.ToNS, WidthNS: f.WidthNS}, cond),
		pageQuery(&m, page{tenantID: scan.TenantID, after: scan.After, beforeNS: scan.BeforeNS, limit: scan.Limit, condition: cond}),
	} {
		text := strings.TrimPrefix(q.sql, "\n") + "\n"
		for _, name := range slices.Sorted(maps.Keys(q.parameters)) {
			text += "-- " + name + " = " + q.parameters[name] + "\n"
		}
		texts = append(texts, text)
	}
	return texts, nil
}
