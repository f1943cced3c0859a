package clickhouse_test

import (
	"fmt"
	"testing"

	"tocsin/cursor"
	"tocsin/evaluator/source"
	"tocsin/internal/chtest"
	"tocsin/internal/clickhouse"
	"tocsin/rules"
)

// BenchmarkMatching searches for the first thousand matches among a million exchanges of one hour,
// as a preview does.
func BenchmarkMatching(b *testing.B) {
	db := chtest.New(b)
	const hour = int64(3_600_000_000_000)
	from := base / hour * hour
	err := db.Conn.Exec(b.Context(), fmt.Sprintf(`
		INSERT INTO exchanges (tenant_id, start_time, environment, application_id, route_id, execution_id, duration, status, error_type, error_message, attributes)
		SELECT 'default', fromUnixTimestamp64Nano(toInt64(%d) + toInt64(number) * 3600000, 'UTC'), 'production', concat('app-', toString(number %% 20)),
			concat('route-', toString(number %% 60), '-in'), toString(number), cityHash64(number) %% 2000000000, if(number %% 20 = 0, 'FAILED', 'COMPLETED'),
			'Timeout', concat('ERP did not answer within ', toString(number), ' ms'), map('customer', toString(number %% 1000))
		FROM numbers(1000000)`, from))
	if err != nil {
		b.Fatal(err)
	}
	ch, err := clickhouse.Open(clickhouse.Options{URL: db.URL, Version: "test"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = ch.Close() })
	everything := []rules.Status{rules.Completed, rules.Failed}
	second := int64(1000)
	for name, c := range map[string]struct {
		scope  rules.Scope
		filter rules.Filter
	}{
		"failed":    {},
		"wildcards": {rules.Scope{Applications: []string{"app-1*"}, Routes: []string{"*oute*-in"}}, rules.Filter{Statuses: everything}},
		"regexp":    {rules.Scope{}, rules.Filter{Statuses: everything, ErrorMessageMatches: `(?i)within \d+7 ms$`}},
		"attribute": {rules.Scope{}, rules.Filter{Statuses: everything, Attributes: []rules.AttributeMatch{{Key: "customer", Op: rules.AttributeEquals, Value: "42"}}}},
		"duration":  {rules.Scope{}, rules.Filter{Statuses: everything, MinDurationMS: &second}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				n, err := matching(b.Context(), ch, cursor.Range{FromNS: from, ToNS: from + hour}, source.Narrowing{Scope: c.scope, Filter: c.filter})
				if err != nil || n == 0 {
					b.Fatal(n, err)
				}
			}
		})
	}
}
