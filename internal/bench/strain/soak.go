package strain

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/bench/lab"
	"tocsin/internal/bench/meter"
	"tocsin/internal/bench/peers"
	"tocsin/internal/bench/product"
	"tocsin/internal/bench/report"
	"tocsin/internal/bench/trial"
)

// soaking is done in rounds, so that half an hour does not fill the disk.
type soaking struct {
	rounds, size int
	every        time.Duration
}

// soakTick is the time between ticks, the default.
const soakTick = time.Second

// soak is B11: rounds of whole work while somebody holds a transaction open in
// Postgres, which keeps it from removing what is dead.
func soak(ctx context.Context, b bench) ([]report.Result, error) {
	s := lab.Either(b.Quick, soaking{4, 2_000, 3 * time.Second}, soaking{12, 5_000, 7 * time.Second})
	if b.Soak {
		s.rounds = int(30 * time.Minute / s.every)
	}
	r := report.Result{
		ID: "B11", Title: fmt.Sprintf("Soak: %v with a long transaction held open in Postgres", time.Duration(s.rounds)*s.every),
		Unit:  fmt.Sprintf("a round of %s exchanges, alerted and received", report.Number(float64(s.size))),
		Notes: []string{fmt.Sprintf("A round begins every %v. Its rate is measured from the tick that finds the exchanges, which were written before, to the last message. Start and end are the first and the last quarter of the rounds, without the first round, for memory and for rates. One round is not enough for memory, because the replica may collect garbage shortly before or after its end.", s.every)},
	}
	rounds, err := b.soak(ctx, s)
	if err != nil {
		return []report.Result{r}, err
	}
	part := max(1, len(rounds)/4)
	rates, micros := lab.Of(rounds, func(r round) float64 { return r.rate }), lab.Of(rounds, func(r round) float64 { return r.micros })
	first, last := rates[:part], rates[len(rates)-part:]
	resident := lab.Of(rounds, func(r round) float64 { return r.megabytes })
	r.Figures = []report.Figure{
		report.Of("rate at the start", "alerts/s", first, nil),
		report.Of("rate at the end", "alerts/s", last, nil),
		report.One("rate at the end over that at the start", "×", trial.Summarise(last).Median/trial.Summarise(first).Median, report.AtLeast(0.95)),
		report.Of("CPU of an alert at the start, all processes", "µs", micros[:part], nil),
		report.Of("CPU of an alert at the end, all processes", "µs", micros[len(micros)-part:], nil),
		report.Of("memory at the start", "MB", resident[:part], nil),
		report.Of("memory at the end", "MB", resident[len(resident)-part:], nil),
		report.One("memory at the end over that at the start", "×",
			trial.Summarise(resident[len(resident)-part:]).Median/trial.Summarise(resident[:part]).Median, report.AtMost(1.1)),
	}
	shares := trial.Runs{}
	for i, round := range rounds {
		quarter := fmt.Sprintf("quarter %d", min(i/part+1, 4))
		shares[quarter] = append(shares[quarter], trial.Measure{Asked: s.size, CPU: round.used})
	}
	for _, quarter := range slices.Sorted(maps.Keys(shares)) {
		r.Notes = append(r.Notes, lab.CPUNotes(shares, quarter))
	}
	return []report.Result{r}, nil
}

// round is what was measured of one.
type round struct {
	// rate is alerts per second, micros the processor time of one, of all processes,
	// in microseconds, and megabytes what the replica holds at the end of the round.
	rate, micros, megabytes float64
	// used is the processor time of each process.
	used map[string]time.Duration
}

func (b bench) soak(ctx context.Context, s soaking) (rounds []round, err error) {
	world, err := b.Engines.NewWorld(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, world.Close(ctx)) }()
	book := b.Book()
	hook, err := world.Hook(ctx, b.Receiver.URL(book), peers.Connections, true)
	if err != nil {
		return nil, err
	}
	if _, err := world.Rule(ctx, []uuid.UUID{hook}); err != nil {
		return nil, err
	}
	replica, err := world.Start(ctx, "TOCSIN_TICK_INTERVAL="+soakTick.String(), "TOCSIN_PARTITION_LEASE=2m")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, replica.End()) }()
	release, err := world.HoldSnapshot(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	processes := map[string]int{"Tocsin": replica.PID(), "Postgres": b.Engines.PostgresPID, "ClickHouse": b.Engines.ClickHousePID}
	for nth := range s.rounds + 1 {
		began := time.Now()
		done, err := b.soakOnce(ctx, soakWorld{world, replica, book, processes}, nth, s.size)
		if err != nil {
			return nil, fmt.Errorf("round %d: %w", nth, err)
		}
		memory, err := meter.Resident(replica.PID())
		if err != nil {
			return nil, err
		}
		done.megabytes = float64(memory) / (1 << 20)
		b.Progress(fmt.Sprintf("round %d of %d: %.0f/s, %.0f µs of CPU each, %.0f MB", nth, s.rounds, done.rate, done.micros, done.megabytes))
		if nth > 0 {
			rounds = append(rounds, done)
		}
		if err := lab.Wait(ctx, s.every-time.Since(began)); err != nil {
			return nil, err
		}
	}
	total := (s.rounds + 1) * s.size
	if _, err := world.AwaitRecorded(ctx, total); err != nil {
		return nil, err
	}
	return rounds, b.Complete(ctx, book, total)
}

type soakWorld struct {
	*product.World
	replica   *product.Replica
	book      string
	processes map[string]int
}

// soakOnce is the nth round.
func (b bench) soakOnce(ctx context.Context, world soakWorld, nth, size int) (done round, err error) {
	began, err := world.Prepare(ctx, world.replica, soakTick, product.Exchanges{Count: size, Prefix: fmt.Sprintf("execution-%d-", nth)})
	if err != nil {
		return done, err
	}
	before, err := meter.Read(world.processes)
	if err != nil {
		return done, err
	}
	got, err := b.AwaitReceived(ctx, world.book, (nth+1)*size)
	if err != nil {
		return done, err
	}
	after, err := meter.Read(world.processes)
	if err != nil {
		return done, err
	}
	var used time.Duration
	done.used = after.Since(before)
	for _, u := range done.used {
		used += u
	}
	done.rate = float64(size) / time.Unix(0, got.LastNS).Sub(began).Seconds()
	done.micros = float64(used.Microseconds()) / float64(size)
	return done, nil
}
