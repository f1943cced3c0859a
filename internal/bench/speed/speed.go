// Package speed contains the workloads that measure how fast Tocsin is: what it writes, sends,
// hands over and finds, with one process and with several (B1 to B6, B12).
package speed

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
		{IDs: []string{"B1"}, Run: run(persist)},
		{IDs: []string{"B2", "B3", "B5", "B12"}, Run: run(deliver)},
		{IDs: []string{"B4"}, Run: run(handOver)},
		{IDs: []string{"B6"}, Run: run(detect)},
	}
}
