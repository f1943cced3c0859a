// Package strain contains the workloads that measure Tocsin under strain: many rules, long
// histories, receivers that hang, crashes, long runs, large backlogs (B7 to B11, M).
package strain

import (
	"context"

	"tocsin/internal/bench/lab"
	"tocsin/internal/bench/report"
)

// bench is what the workloads share.
type bench struct{ *lab.Bench }

func run(work func(context.Context, bench) ([]report.Result, error)) func(context.Context, *lab.Bench) ([]report.Result, error) {
	return func(ctx context.Context, b *lab.Bench) ([]report.Result, error) { return work(ctx, bench{b}) }
}

// Workloads returns them in the order in which they run.
func Workloads() []lab.Workload {
	return []lab.Workload{
		{IDs: []string{"B7"}, Run: run(manyRules)},
		{IDs: []string{"B8"}, Run: run(history)},
		{IDs: []string{"B9"}, Run: run(slowReceivers)},
		{IDs: []string{"B10"}, Run: run(crash)},
		{IDs: []string{"B11"}, Run: run(soak)},
		{IDs: []string{"M"}, Run: run(memory)},
	}
}
