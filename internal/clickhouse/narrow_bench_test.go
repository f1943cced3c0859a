package clickhouse_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"tocsin/cursor"
	"tocsin/evaluator/source"
	"tocsin/internal/chtest"
	"tocsin/internal/clickhouse"
	"tocsin/rules"
)

// BenchmarkNarrowedScan reads a million exchanges of a tenant's hundred applications, a thousand
// each second, for rules that watch two of these: the ten seconds that a tick reads as new, with
// and without the applications in the statement.
func BenchmarkNarrowedScan(b *testing.B) {
	const rows = 1_000_000
	from := base / second * second
	tables := map[string]struct {
		mapping    clickhouse.Mapping
		statements []string
	}{
		"exchanges": {clickhouse.Exchanges(), []string{fmt.Sprintf(`
			INSERT INTO exchanges (tenant_id, start_time, environment, application_id, route_id, execution_id, end_time, duration, status, error_type, error_message, attributes)
			SELECT 'default', fromUnixTimestamp64Nano(toInt64(%d) + toInt64(number) * 1000000, 'UTC') AS s, 'production', concat('app-', toString(number %% 100)),
				concat('route-', toString(number %% 7)), hex(sipHash128(number)), s, 1000000, 'FAILED',
				'ConnectException', concat('ERP did not answer within ', toString(number), ' ms'), map('customer', toString(number %% 1000))
			FROM numbers(%d)`, from, rows)}},
		"otel_traces": {clickhouse.OtelTraces(), []string{otelTraces, fmt.Sprintf(`
			INSERT INTO otel_traces (Timestamp, TraceId, SpanId, SpanName, SpanKind, ServiceName, ResourceAttributes, SpanAttributes, Duration, StatusCode, StatusMessage)
			SELECT fromUnixTimestamp64Nano(toInt64(%d) + toInt64(number) * 1000000, 'UTC'), lower(hex(sipHash128(number))), lower(hex(cityHash64(number))), concat('route-', toString(number %% 7)),
				'Server', concat('app-', toString(number %% 100)), map('service.name', concat('app-', toString(number %% 100))), map('customer', toString(number %% 1000)), 1000000, 'Error', 'ERP refused'
			FROM numbers(%d)`, from, rows)}},
	}
	for _, table := range []string{"exchanges", "otel_traces"} {
		db := chtest.New(b)
		for _, statement := range tables[table].statements {
			if err := db.Conn.Exec(b.Context(), statement); err != nil {
				b.Fatal(err)
			}
		}
		ch, err := clickhouse.Open(clickhouse.Options{URL: db.URL, Mapping: tables[table].mapping, Version: "test"})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = ch.Close() })
		for name, applications := range map[string][]string{"all": nil, "two": {"app-7", "app-42"}} {
			b.Run(table+"/"+name, func(b *testing.B) {
				read, pages := 0, 0
				before := cpu(b)
				for b.Loop() {
					at := cursor.Position{StartTimeNS: from + 990*second - 1}
					for {
						page, err := ch.Scan(b.Context(), source.Scan{
							Tenants: tenants("default"), After: at, BeforeNS: from + 1000*second, Statuses: []rules.Status{rules.Failed},
							Applications: applications, Limit: 1000,
						})
						if err != nil {
							b.Fatal(err)
						}
						read, pages = read+len(page.Exchanges), pages+1
						if !page.More {
							break
						}
						at = page.Exchanges[len(page.Exchanges)-1].Position()
					}
				}
				b.ReportMetric(float64(read)/float64(b.N), "rows/op")
				b.ReportMetric(float64(pages)/float64(b.N), "pages/op")
				b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(b.N)/1000, "cpu-ms/op")
			})
		}
	}
}

const second = int64(1e9)

// cpu returns the processor time that this process has used.
func cpu(tb testing.TB) time.Duration {
	tb.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
