package window_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator/watch"
	"tocsin/evaluator/window"
	"tocsin/evaluator/window/counting"
	"tocsin/rules"
)

// nothing is a source in which no exchange is seen.
type nothing struct{}

func (nothing) Tally(context.Context, counting.TallyQuery) (counting.Tallies, error) {
	return counting.Tallies{Server: "one"}, nil
}

func (nothing) CountWindows(_ context.Context, windows []counting.Query) (counting.Counted, error) {
	return counting.Counted{Server: "one", Groups: make([][]counting.Group, len(windows))}, nil
}

func (nothing) Arrivals(context.Context, watch.ArrivalsQuery) (watch.Arrivals, error) {
	return watch.Arrivals{Server: "one", Counts: map[int64]int64{}}, nil
}

func (nothing) Newest(context.Context, []counting.NewestQuery) ([][]rules.Exchange, error) {
	return nil, nil
}

// BenchmarkEvaluate evaluates four window rules, one of each mode, of ever more tenants. Nothing is
// seen, and no alert is open: what is left is what each rule costs.
func BenchmarkEvaluate(b *testing.B) {
	for _, tenants := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprint(tenants), func(b *testing.B) {
			request := window.Request{
				Request: counting.Request{Partition: 1, Over: func() bool { return false }},
				Watches: true,
			}
			for n := range tenants {
				tenant := fmt.Sprintf("tenant-%06d", n)
				request.Tenants.Names = append(request.Tenants.Names, tenant)
				for i, mode := range []rules.FireMode{rules.CountInWindow, rules.RatioInWindow, rules.DurationInWindow, rules.AbsentInWindow} {
					r := &rules.Rule{ID: uuid.New(), TenantID: tenant, Version: 1, Definition: rules.Definition{
						Name: "rule", Enabled: true, FireMode: mode, Severity: rules.Warning, Threshold: 1, WindowSeconds: 60, IntervalSeconds: 1,
						GroupBy: rules.GroupByRoute, Scope: rules.Scope{Applications: []string{"unseen"}},
					}}
					switch i {
					case 1:
						r.Percent, r.MinVolume = 5, 20
					case 2:
						r.Percentile, r.DurationMS, r.MinVolume = 95, 2000, 20
					case 3:
						r.LearnDays = 1
					}
					judge, err := rules.NewJudge(r)
					if err != nil {
						b.Fatal(err)
					}
					request.Rules = append(request.Rules, counting.Compiled{Rule: r, Judge: judge})
				}
			}
			e := window.New(window.Options{Source: nothing{}, Logger: slog.New(slog.DiscardHandler)})
			at := watermark
			b.ReportAllocs()
			for b.Loop() {
				at += second
				request.WatermarkNS, request.Now = at, time.Unix(0, at)
				out := e.Evaluate(b.Context(), request)
				if out.SourceErr != nil || len(out.Failed) > 0 {
					b.Fatal(out.SourceErr, out.Failed)
				}
				request.Watch = out.Watch
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(4*tenants), "ns/rule")
		})
	}
}
