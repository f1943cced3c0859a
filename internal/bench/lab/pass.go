package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tocsin/internal/bench/meter"
	"tocsin/internal/bench/product"
)

// PassInterval is the time between passes when one pass is measured: long enough for everything
// else that is done in between.
const PassInterval = 500 * time.Millisecond

// WindowsInterval is the same with window rules: longer than their interval, so that each pass
// evaluates all of them.
const WindowsInterval = 1500 * time.Millisecond

// Pass is what the passes of one tick did that found new exchanges.
type Pass struct {
	// Took is the duration of all passes of the tick together, from the replica's own histogram.
	// CPU is what all processes used from before the tick until its passes had ended, Used the part
	// of each.
	Took, CPU time.Duration
	Used      meter.Reading
	Read      product.Reads
}

// Passing measures passes of one replica over a world that only it evaluates.
type Passing struct {
	World   *product.World
	Replica *product.Replica
	// Partitions is the number of those that have rules.
	Partitions int
	// Write writes the nth batch of exchanges. If more than the passes of one tick were measured,
	// another batch is written.
	Write func(nth int) error
	// Alerts are raised by each batch.
	Alerts int

	written int
}

// Next writes a batch, and measures the passes that find it.
func (b *Bench) Next(ctx context.Context, p *Passing) (Pass, error) {
	const tries = 5
	for range tries {
		found, passes, err := b.once(ctx, p)
		if err != nil {
			return found, err
		}
		n, err := p.World.Number(ctx, "select count(*) from alert")
		if err == nil && n != int64(p.written*p.Alerts) {
			err = fmt.Errorf("%d alerts of %d batches, want %d of each", n, p.written, p.Alerts)
		}
		if err != nil || passes == p.Partitions {
			return found, err
		}
		b.Progress(fmt.Sprintf("%d passes over %d partitions were measured, not one over each: again", passes, p.Partitions))
	}
	return Pass{}, errors.New("the machine is too busy to measure a single tick")
}

func (b *Bench) once(ctx context.Context, p *Passing) (found Pass, passes int, err error) {
	processes := map[string]int{"Tocsin": p.Replica.PID(), "Postgres": b.Engines.PostgresPID, "ClickHouse": b.Engines.ClickHousePID}
	if _, err := p.World.AwaitCaughtUp(ctx); err != nil {
		return found, 0, err
	}
	// When the passes of a tick have ended, the next one begins in almost an interval.
	passesBefore, err := p.Replica.Passes(ctx)
	if err == nil {
		passesBefore, err = p.Replica.AwaitPasses(ctx, passesBefore.Count+p.Partitions)
	}
	if err != nil {
		return found, 0, err
	}
	readBefore, err := p.World.Reads(ctx)
	if err != nil {
		return found, 0, err
	}
	p.written++
	if err := p.Write(p.written); err != nil {
		return found, 0, err
	}
	written := time.Now()
	before, err := meter.Read(processes)
	if err != nil {
		return found, 0, err
	}
	if err := p.World.AwaitJudged(ctx, written.UnixNano()); err != nil {
		return found, 0, err
	}
	// After the commit of the new exchanges a pass evaluates window rules.
	passesAfter, err := p.Replica.AwaitPasses(ctx, passesBefore.Count+p.Partitions)
	if err != nil {
		return found, 0, err
	}
	after, err := meter.Read(processes)
	if err != nil {
		return found, 0, err
	}
	found.Used = after.Since(before)
	for _, used := range found.Used {
		found.CPU += used
	}
	readAfter, err := p.World.Reads(ctx)
	if err != nil {
		return found, 0, err
	}
	found.Read = readAfter.Since(readBefore)
	made := passesAfter.Since(passesBefore)
	found.Took = made.Took
	return found, made.Count, nil
}
