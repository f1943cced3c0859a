package strain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/bench/lab"
	"tocsin/internal/bench/meter"
	"tocsin/internal/bench/peers"
	"tocsin/internal/bench/product"
	"tocsin/internal/bench/report"
)

// memory measures what a replica of all roles holds of the machine's memory,
// idle and with a backlog.
func memory(ctx context.Context, b bench) ([]report.Result, error) {
	backlog := lab.Either(b.Quick, 20_000, 1_000_000)
	r := report.Result{
		ID: "M", Title: "Memory of a replica", Unit: "resident memory of the process",
		Notes: []string{
			fmt.Sprintf("The backlog is %s alerts in the inbox and as many PENDING messages, to a receiver that never answers. During the measurement, the inbox is listed again and again. Both figures are of processes that evaluate a rule. The process with the backlog was started after the other one.",
				report.Number(float64(backlog))),
		},
	}
	idle, loaded, err := b.resident(ctx, backlog)
	if err != nil {
		return []report.Result{r}, err
	}
	r.Figures = []report.Figure{
		report.One("idle", "MB", idle, report.AtMost(60)),
		report.One("with a backlog", "MB", loaded, nil),
		report.One("the backlog adds", "MB", loaded-idle, report.AtMost(50)),
	}
	return []report.Result{r}, nil
}

// resident returns megabytes of two replicas, one after the other: idle, and the most
// with a backlog.
func (b bench) resident(ctx context.Context, backlog int) (idle, loaded float64, err error) {
	world, err := b.Engines.NewWorld(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, world.Close(ctx)) }()
	hook, err := world.Hook(ctx, b.Receiver.HangURL(), peers.Connections, false)
	if err != nil {
		return 0, 0, err
	}
	if _, err := world.Rule(ctx, []uuid.UUID{hook}); err != nil {
		return 0, 0, err
	}
	idler, err := world.Start(ctx)
	if err != nil {
		return 0, 0, err
	}
	_, err = world.AwaitCaughtUp(ctx)
	if err == nil {
		err = lab.Wait(ctx, lab.Either(b.Quick, 2*time.Second, 5*time.Second))
	}
	if err == nil {
		idle, err = megabytes(idler)
	}
	if err := errors.Join(err, idler.End()); err != nil {
		return 0, 0, err
	}
	if err := b.pile(ctx, world, backlog); err != nil {
		return 0, 0, err
	}
	loaded, err = b.besideBacklog(ctx, world, hook)
	return idle, loaded, err
}

// pile commits a backlog, and leaves the partitions to others.
func (b bench) pile(ctx context.Context, world *product.World, backlog int) error {
	began := time.Now()
	committer, err := world.Committer(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(committer.Pending(ctx, backlog), committer.Release(ctx), world.Exec(ctx, "analyze")); err != nil {
		return err
	}
	b.Progress(fmt.Sprintf("a backlog of %d in %v", backlog, time.Since(began).Round(time.Second)))
	return nil
}

// besideBacklog returns the most megabytes of a replica that works on a backlog.
func (b bench) besideBacklog(ctx context.Context, world *product.World, hook uuid.UUID) (most float64, err error) {
	replica, err := world.Start(ctx)
	if err != nil {
		return 0, err
	}
	defer replica.Kill() // what hangs keeps an orderly end waiting
	if err := replica.EnableHook(ctx, hook); err != nil {
		return 0, err
	}
	for range 20 {
		if err := errors.Join(replica.ListInbox(ctx), lab.Wait(ctx, lab.Either(b.Quick, 100*time.Millisecond, 500*time.Millisecond))); err != nil {
			return 0, err
		}
		now, err := megabytes(replica)
		if err != nil {
			return 0, err
		}
		most = max(most, now)
	}
	return most, nil
}

func megabytes(replica *product.Replica) (float64, error) {
	bytes, err := meter.Resident(replica.PID())
	return float64(bytes) / (1 << 20), err
}
