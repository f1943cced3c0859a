package lab

import (
	"context"
	"fmt"
	"time"

	"tocsin/internal/bench/report"
	"tocsin/internal/bench/trial"
)

// Percentiles collects percentiles of several trials.
type Percentiles struct{ p50, p99 []float64 }

// Add takes the latencies of a trial, in milliseconds.
func (p *Percentiles) Add(latencies []float64) {
	p.p50 = append(p.p50, trial.Quantile(latencies, 0.50))
	p.p99 = append(p.p99, trial.Quantile(latencies, 0.99))
}

// Figures makes those of the p50 and the p99.
func (p *Percentiles) Figures(name string, p50, p99 *report.Bound) []report.Figure {
	return []report.Figure{
		report.Of(name+", p50", "ms", p.p50, p50),
		report.Of(name+", p99", "ms", p.p99, p99),
	}
}

// Latencies returns the differences between when messages arrived and when they could have, by
// exchange.
func (b *Bench) Latencies(ctx context.Context, book string, from map[string]int64) ([]float64, error) {
	return b.LatenciesBut(ctx, book, from, nil)
}

// LatenciesBut is the same without some exchanges, whose messages must have arrived all the same.
func (b *Bench) LatenciesBut(ctx context.Context, book string, from map[string]int64, but map[string]bool) ([]float64, error) {
	came, err := b.Receiver.Arrivals(ctx, book)
	if err != nil {
		return nil, err
	}
	if err := b.Complete(ctx, book, len(from)); err != nil {
		return nil, err
	}
	latencies := make([]float64, 0, len(from))
	for id, at := range from {
		arrived, ok := came[id]
		if !ok {
			return nil, fmt.Errorf("no message came of exchange %s", id)
		}
		if !but[id] {
			latencies = append(latencies, float64(arrived-at)/float64(time.Millisecond))
		}
	}
	return latencies, nil
}

// Complete returns an error unless a book contains each of n messages once.
func (b *Bench) Complete(ctx context.Context, book string, count int) error {
	m, err := b.Counted(ctx, book, count, count)
	if err != nil {
		return err
	}
	m.Elapsed = 1
	return m.Check()
}

// Of returns a figure of each.
func Of[T any](all []T, figure func(T) float64) []float64 {
	out := make([]float64, len(all))
	for i, each := range all {
		out[i] = figure(each)
	}
	return out
}

// Ratios returns the ratios trial by trial.
func Ratios[T any](side, over []T, figure func(T) float64) []float64 {
	out := make([]float64, min(len(side), len(over)))
	for i := range out {
		out[i] = figure(side[i]) / figure(over[i])
	}
	return out
}
