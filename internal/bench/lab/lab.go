// Package lab contains what all workloads share: the receiver, the engines, how long to wait, what
// to count, and how the figures of trials are combined.
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
	// Alertmanager is its program, "" if there is none.
	Alertmanager string
	Trials       int
	// Quick makes everything small. Soak makes the soak take half an hour. Huge extends the history
	// to 10^8 exchanges.
	Quick, Soak, Huge bool
	// Progress is called with progress.
	Progress func(string)

	books int
}

// Workload is one thing to measure, or several that share their sides.
type Workload struct {
	// IDs name the results, in order.
	IDs []string
	// Run returns the results; if it also returns an error, they are marked as refused.
	Run func(ctx context.Context, b *Bench) ([]report.Result, error)
}

// Timeout limits any wait.
const Timeout = 3 * time.Minute

// Either returns one of two sizes: that of a quick run or that of a whole run.
func Either[T any](quickly bool, quick, whole T) T {
	if quickly {
		return quick
	}
	return whole
}

// Book returns the name of an unused book of the receiver.
func (b *Bench) Book() string {
	b.books++
	return fmt.Sprint("book-", b.books)
}

// Processes are those that work for a side: the engines and the receiver, and others by name.
func (b *Bench) Processes(more map[string]int) map[string]int {
	all := map[string]int{"Postgres": b.Engines.PostgresPID, "ClickHouse": b.Engines.ClickHousePID, "receiver": b.ReceiverPID}
	maps.Copy(all, more)
	return all
}

// Counted returns the measure of a run whose messages went to a book: it reads what arrived again
// after all was recorded.
func (b *Bench) Counted(ctx context.Context, book string, asked, recorded int) (trial.Measure, error) {
	count, err := b.Receiver.Await(ctx, book, asked, 0)
	return trial.Measure{Asked: asked, Sent: count.Distinct + count.Unknown, Recorded: recorded, Repeats: count.Repeats}, err
}

// AwaitReceived waits until a book contains n messages.
func (b *Bench) AwaitReceived(ctx context.Context, book string, count int) (receiver.Count, error) {
	got, err := b.Receiver.Await(ctx, book, count, Timeout)
	if err == nil && got.Distinct < count {
		err = fmt.Errorf("only %d of %d messages came within %v", got.Distinct, count, Timeout)
	}
	return got, err
}

// Metered measures what processes use from now on.
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

// End ends a child and ignores how it ends.
func End(p *child.Process) { _ = p.Stop(10 * time.Second) }

// CPUNotes describes what each process used for an operation.
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

// Bars returns the plot of rates.
func Bars(runs trial.Runs, sides []trial.Side) []report.Bar {
	var all []report.Bar
	for _, side := range sides {
		if len(runs[side.Name]) > 0 {
			all = append(all, report.Bar{Name: side.Name, Summary: trial.Summarise(runs.Of(side.Name, (*trial.Measure).Rate))})
		}
	}
	return all
}
