package clickhouse_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator/window"
	"tocsin/evaluator/window/counting"
	"tocsin/internal/chtest"
	"tocsin/internal/clickhouse"
	"tocsin/rules"
)

// BenchmarkWindows evaluates 2,000 window rules of several tenants over an hour with a
// million exchanges, of which one in a hundred failed.
func BenchmarkWindows(b *testing.B) {
	for _, tenants := range []int{1, 100, 2000} {
		for name, message := range map[string]string{"tallied": "", "conditions": "refused"} {
			if name == "conditions" && tenants != 100 {
				continue
			}
			b.Run(fmt.Sprintf("tenants=%d/%s", tenants, name), func(b *testing.B) {
				db := chtest.New(b)
				if err := db.Conn.Exec(b.Context(), fmt.Sprintf(`
					INSERT INTO exchanges (tenant_id, start_time, end_time, execution_id, application_id, route_id, status, error_message, duration)
					SELECT 'tenant-' || toString(number %% %d), fromUnixTimestamp64Nano(toInt64(%d) - toInt64(number) * 3600000),
						fromUnixTimestamp64Nano(toInt64(%d) - toInt64(number) * 3600000 + 1000000), toString(number), 'app-' || toString(number %% 7),
						'route-' || toString(number %% 50), if(number %% 101 = 0, 'FAILED', 'COMPLETED'), 'refused by ' || toString(number), 1000000
					FROM numbers(1000000)`, tenants, base-1e9, base-1e9)); err != nil {
					b.Fatal(err)
				}
				reader, err := clickhouse.Open(clickhouse.Options{URL: db.URL, Version: "test"})
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { _ = reader.Close() })
				source := &watchedSource{Source: reader}
				request := window.Request{Request: counting.Request{WatermarkNS: base, Now: time.Unix(0, base), Over: func() bool { return false }}}
				for i := range tenants {
					request.Tenants.Names = append(request.Tenants.Names, fmt.Sprint("tenant-", i))
				}
				for i := range 2000 {
					rule := &rules.Rule{ID: uuid.New(), TenantID: fmt.Sprint("tenant-", i%tenants), Definition: rules.Definition{
						FireMode: rules.CountInWindow, Threshold: 1_000_000, WindowSeconds: []int{60, 300}[i%2], GroupBy: rules.GroupByRoute,
						Scope: rules.Scope{Applications: []string{fmt.Sprint("app-", i%7)}}, Filter: rules.Filter{ErrorMessageContains: message},
					}}
					judge, err := rules.NewJudge(rule)
					if err != nil {
						b.Fatal(err)
					}
					request.Rules = append(request.Rules, counting.Compiled{Rule: rule, Judge: judge})
				}
				engine := window.New(window.Options{Source: source, Texts: noTexts{}, Logger: slog.New(slog.DiscardHandler)})
				for b.Loop() {
					if outcome := engine.Evaluate(b.Context(), request); len(outcome.Evaluated) != 2000 {
						b.Fatalf("%d rules evaluated, %v, %v", len(outcome.Evaluated), outcome.SourceErr, outcome.Failed)
					}
				}
				b.ReportMetric(float64(source.tallies+source.batches)/float64(b.N), "queries/op")
			})
		}
	}
}
