// Package workloads holds what is measured, one file for each or for those that
// share their sides. Each states its floor, its peer and its unit, and what it
// should reach.
package workloads

import (
	"context"
	"fmt"
	"maps"
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
	// Tell is told of progress.
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

// All returns every workload in the order in which they run.
func All() []Workload {
	return []Workload{
		{[]string{"B1"}, persist},
		{[]string{"B2", "B3", "B5"}, deliver},
		{[]string{"B4"}, handOver},
	}
}

// patience is how long anything may take that is not done.
const patience = 3 * time.Minute

// either returns one size for a quick run and one for a whole.
func either[T any](b *Bench, quick, whole T) T {
	if b.Quick {
		return quick
	}
	return whole
}

// book names a book of the receiver that nobody else uses.
func (b *Bench) book() string {
	b.books++
	return fmt.Sprint("book-", b.books)
}

// processes are those that work for a side: the engines and the receiver, and more by name.
func (b *Bench) processes(more map[string]int) map[string]int {
	all := map[string]int{"Postgres": b.Engines.PostgresPID, "ClickHouse": b.Engines.ClickHousePID, "receiver": b.ReceiverPID}
	maps.Copy(all, more)
	return all
}

// counted makes the measure of a run whose messages went to a book: it asks what came, once more after all was recorded.
func (b *Bench) counted(ctx context.Context, book string, asked, recorded int) (trial.Measure, error) {
	count, err := b.Receiver.Await(ctx, book, asked, 0)
	return trial.Measure{Asked: asked, Sent: count.Distinct + count.Unknown, Recorded: recorded, Repeats: count.Repeats}, err
}

// awaitReceived waits until a book holds so many messages.
func (b *Bench) awaitReceived(ctx context.Context, book string, count int) (receiver.Count, error) {
	got, err := b.Receiver.Await(ctx, book, count, patience)
	if err == nil && got.Distinct < count {
		err = fmt.Errorf("only %d of %d messages came within %v", got.Distinct, count, patience)
	}
	return got, err
}

// metered reads what processes use from now on.
func metered(named map[string]int) (func() (map[string]time.Duration, error), error) {
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

// end ends a child and forgets how.
func end(p *child.Process) { _ = p.Stop(10 * time.Second) }

// cpuNotes tells what each process used for an operation.
func cpuNotes(runs trial.Runs, side string) string {
	names := map[string][]float64{}
	for _, m := range runs[side] {
		for name, used := range m.CPU {
			names[name] = append(names[name], float64(used)/float64(time.Microsecond)/float64(m.Asked))
		}
	}
	var parts []string
	for _, name := range sortedKeys(names) {
		parts = append(parts, name+" "+report.Number(trial.Summarise(names[name]).Median))
	}
	return "CPU of " + side + ", µs per operation: " + strings.Join(parts, ", ")
}

// bars makes the plot of rates.
func bars(runs trial.Runs, sides []trial.Side) []report.Bar {
	var all []report.Bar
	for _, side := range sides {
		if len(runs[side.Name]) > 0 {
			all = append(all, report.Bar{Name: side.Name, Summary: trial.Summarise(runs.Of(side.Name, (*trial.Measure).Rate))})
		}
	}
	return all
}
