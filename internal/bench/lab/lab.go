// Package lab holds what all workloads share: the receiver, the engines, how long
// to wait, what to count, and how the figures of trials are put together.
package lab

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tocsin/internal/bench/child"
	"tocsin/internal/bench/meter"
	"tocsin/internal/bench/product"
	"tocsin/internal/bench/receiver"
	"tocsin/internal/bench/report"
	"tocsin/internal/bench/trial"
)

// Bench is what all workloads share.
type Bench struct {
	Engines     *product.Engines
	Receiver    receiver.Client
	ReceiverPID int
	// Alertmanager is its program, "" where there is none.
	Alertmanager string
	Trials       int
	// Quick makes everything small. Soak has the soak take half an hour. Huge has
	// the history go up to 10^8 exchanges.
	Quick, Soak, Huge bool
	// Tell is called with progress.
	Tell func(string)

	books int
}

// Workload is one thing to measure, or several that share their sides.
type Workload struct {
	// IDs name the results, in order.
	IDs []string
	// Run returns what it found, also with an error that refuses it.
	Run func(ctx context.Context, b *Bench) ([]report.Result, error)
}

// Timeout is how long anything may take that is not done.
const Timeout = 3 * time.Minute

// Either returns one size for a quick run and one for a whole.
func Either[T any](quickly bool, quick, whole T) T {
	if quickly {
		return quick
	}
	return whole
}

// Book names a book of the receiver that nobody else uses.
func (b *Bench) Book() string {
	b.books++
	return fmt.Sprint("book-", b.books)
}

// Processes are those that work for a side: the engines and the receiver, and more by name.
func (b *Bench) Processes(more map[string]int) map[string]int {
	all := map[string]int{"Postgres": b.Engines.PostgresPID, "ClickHouse": b.Engines.ClickHousePID, "receiver": b.ReceiverPID}
	maps.Copy(all, more)
	return all
}

// Counted makes the measure of a run whose messages went to a book: it asks what came, once more after all was recorded.
func (b *Bench) Counted(ctx context.Context, book string, asked, recorded int) (trial.Measure, error) {
	count, err := b.Receiver.Await(ctx, book, asked, 0)
	return trial.Measure{Asked: asked, Sent: count.Distinct + count.Unknown, Recorded: recorded, Repeats: count.Repeats}, err
}

// AwaitReceived waits until a book holds so many messages.
func (b *Bench) AwaitReceived(ctx context.Context, book string, count int) (receiver.Count, error) {
	got, err := b.Receiver.Await(ctx, book, count, Timeout)
	if err == nil && got.Distinct < count {
		err = fmt.Errorf("only %d of %d messages came within %v", got.Distinct, count, Timeout)
	}
	return got, err
}

// Metered reads what processes use from now on.
func Metered(named map[string]int) (func() (map[string]time.Duration, error), error) {
	before, err := meter.Read(named)
	if err != nil {
		return nil, err
	}
	return func() (map[string]time.Duration, error) {
		after, err := meter.Read(named)
		if err != nil {
			return nil, err
		}
		return after.Since(before), nil
	}, nil
}

// End ends a child and forgets how.
func End(p *child.Process) { _ = p.Stop(10 * time.Second) }

// CPUNotes tells what each process used for an operation.
func CPUNotes(runs trial.Runs, side string) string {
	names := map[string][]float64{}
	for _, m := range runs[side] {
		for name, used := range m.CPU {
			names[name] = append(names[name], float64(used)/float64(time.Microsecond)/float64(m.Asked))
		}
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		parts = append(parts, name+" "+report.Number(trial.Summarise(names[name]).Median))
	}
	if len(parts) == 0 {
		return "CPU of " + side + ": not measured"
	}
	return "CPU of " + side + ", µs per operation: " + strings.Join(parts, ", ")
}

// Bars makes the plot of rates.
func Bars(runs trial.Runs, sides []trial.Side) []report.Bar {
	var all []report.Bar
	for _, side := range sides {
		if len(runs[side.Name]) > 0 {
			all = append(all, report.Bar{Name: side.Name, Summary: trial.Summarise(runs.Of(side.Name, (*trial.Measure).Rate))})
		}
	}
	return all
}
