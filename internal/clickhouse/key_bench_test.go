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

// keys are possible sort keys of a table of exchanges, with the mapping's prune.
func keys() []struct{ name, key, prune string } {
	const rest = "environment, application_id, route_id, execution_id"
	return []struct{ name, key, prune string }{
		{"tenant", "PRIMARY KEY (tenant_id, start_time) ORDER BY (tenant_id, start_time, " + rest + ")", ""},
		{
			"ten minutes", "PRIMARY KEY (toStartOfTenMinutes(start_time), tenant_id, start_time) ORDER BY (toStartOfTenMinutes(start_time), tenant_id, start_time, " + rest + ")",
			"toStartOfTenMinutes(start_time) >= toStartOfTenMinutes({from}) AND toStartOfTenMinutes(start_time) <= toStartOfTenMinutes({to})",
		},
		{"start", "PRIMARY KEY (start_time, tenant_id) ORDER BY (start_time, tenant_id, " + rest + ")", ""},
	}
}

// BenchmarkSortKeys reads two million exchanges, a thousand each second, of 1, 100 and 10,000
// tenants, in one merged part, with several sort keys: the new exchanges of a second, for the
// tenants of one partition of eight, and the fingerprints of two minutes; the new exchanges of one
// tenant; and all of one tenant, as a preview does.
func BenchmarkSortKeys(b *testing.B) {
	const rows = 2_000_000
	from := base / second * second
	end := from + rows/1000*second
	for _, tenants := range []int{1, 100, 10_000} {
		var names []string
		for i := range tenants {
			names = append(names, fmt.Sprintf("tenant-%d", i))
		}
		partition := share(names, 3, min(8, uint32(tenants)))
		if tenants == 1 {
			partition = source.Tenants{Names: names}
		}
		one := source.Tenants{Names: partition.Names[:1]}
		for _, key := range keys() {
			db := chtest.New(b)
			for _, statement := range []string{
				"CREATE TABLE keyed AS exchanges ENGINE = ReplacingMergeTree PARTITION BY toYYYYMM(start_time) " + key.key,
				fmt.Sprintf(`
					INSERT INTO keyed (tenant_id, start_time, environment, application_id, route_id, execution_id, end_time, duration, status, error_type, error_message, attributes)
					SELECT concat('tenant-', toString(cityHash64(number) %% %d)), fromUnixTimestamp64Nano(toInt64(%d) + toInt64(number) * 1000000, 'UTC') AS s, 'production',
						concat('app-', toString(number %% 100)), concat('route-', toString(number %% 7)), hex(sipHash128(number)), s, 1000000,
						if(number %% 20 = 0, 'FAILED', 'COMPLETED'), 'ConnectException', concat('ERP did not answer within ', toString(number), ' ms'),
						map('customer', toString(number %% 1000))
					FROM numbers(%d)`, tenants, from, rows),
				"OPTIMIZE TABLE keyed FINAL",
			} {
				if err := db.Conn.Exec(b.Context(), statement); err != nil {
					b.Fatal(err)
				}
			}
			m := clickhouse.Exchanges()
			m.Table, m.Prune = "keyed", key.prune
			ch, err := clickhouse.Open(clickhouse.Options{URL: db.URL, Mapping: m, Version: "test"})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = ch.Close() })
			failures := []rules.Status{rules.Failed}
			// Each time another range: ClickHouse caches where a condition did not match.
			shift := int64(0)
			scan := func(of source.Tenants, last int64) source.Scan {
				shift++
				return source.Scan{
					Tenants: of, After: cursor.Position{StartTimeNS: end - last - shift}, BeforeNS: end - shift, Statuses: failures, Limit: 1000,
				}
			}
			for _, c := range []struct {
				name string
				of   source.Tenants
				last int64
			}{{"a second", partition, second}, {"a second of one tenant", one, second}, {"all of one tenant", one, end - from}} {
				b.Run(fmt.Sprintf("%d/%s/%s", tenants, key.name, c.name), func(b *testing.B) {
					for b.Loop() {
						if _, err := ch.Scan(b.Context(), scan(c.of, c.last)); err != nil {
							b.Fatal(err)
						}
					}
					read, err := clickhouse.Read(b.Context(), ch, scan(c.of, c.last))
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(read.Granules), "granules")
				})
			}
			b.Run(fmt.Sprintf("%d/%s/two minutes by second", tenants, key.name), func(b *testing.B) {
				for b.Loop() {
					shift++
					if _, err := ch.Observe(b.Context(), source.ObserveQuery{
						Tenants: partition, Statuses: failures, FromNS: end - 120*second - shift, ToNS: end - shift, WidthNS: second,
					}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
