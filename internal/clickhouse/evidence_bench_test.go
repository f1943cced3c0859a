package clickhouse_test

import (
	"fmt"
	"testing"

	"tocsin/evaluator/resolution"
	"tocsin/internal/chtest"
	"tocsin/internal/clickhouse"
)

// BenchmarkEvidence searches for the evidence of open alerts among a million exchanges of one
// tenant within an hour: of one alert and of 500, in 15 minutes and in the whole hour.
func BenchmarkEvidence(b *testing.B) {
	const rows, hour = 1_000_000, 3600 * second
	from := base / second * second
	db := chtest.New(b)
	if err := db.Conn.Exec(b.Context(), fmt.Sprintf(`
		INSERT INTO exchanges (tenant_id, start_time, environment, application_id, route_id, execution_id, end_time, duration, status, correlation_id, attributes)
		SELECT 'default', fromUnixTimestamp64Nano(toInt64(%d) + toInt64(number) * 3600000, 'UTC') AS s, 'production', 'orders',
			concat('route-', toString(number %% 7)), hex(sipHash128(number)), s, 1000000, if(number %% 20 = 0, 'FAILED', 'COMPLETED'), toString(number %% 100000), map('order', toString(number %% 100000))
		FROM numbers(%d)`, from, rows)); err != nil {
		b.Fatal(err)
	}
	source, err := clickhouse.Open(clickhouse.Options{URL: db.URL, Version: "test"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = source.Close() })
	for _, attribute := range []string{"", "order"} {
		for _, alerts := range []int{1, 500} {
			for _, minutes := range []int64{15, 60} {
				b.Run(fmt.Sprintf("attribute=%s/alerts=%d/minutes=%d", attribute, alerts, minutes), func(b *testing.B) {
					q := resolution.Query{TenantID: "default", Attribute: attribute, FromNS: from + hour - minutes*60*second, ToNS: from + hour}
					for i := range alerts {
						q.Values, q.Routes = append(q.Values, fmt.Sprint(i*7+1)), append(q.Routes, fmt.Sprint("route-", i%7))
					}
					found := 0
					for b.Loop() {
						list, err := source.LastCompleted(b.Context(), q)
						if err != nil {
							b.Fatal(err)
						}
						found = len(list)
					}
					b.ReportMetric(float64(found), "keys")
				})
			}
		}
	}
}
