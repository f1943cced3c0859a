package speed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tocsin/internal/bench/lab"
	"tocsin/internal/bench/peers"
	"tocsin/internal/bench/product"
	"tocsin/internal/bench/report"
	"tocsin/internal/bench/trial"
)

// Sides of B12; with one dispatcher it is the drain of B2.
func (d *delivering) several() (sides []trial.Side) {
	for _, n := range lab.Either(d.Quick, []int{2}, []int{2, 4}) {
		sides = append(sides, trial.Side{Name: dispatchers(n), Run: func(ctx context.Context, _ int) (trial.Measure, error) {
			return d.together(ctx, n, d.count)
		}})
	}
	return sides
}

// b12 is one, two and four dispatchers at the same backlog, and an idle one.
func (d *delivering) b12(ctx context.Context, runs trial.Runs, sides []trial.Side) (report.Result, error) {
	r := report.Result{
		ID: "B12", Title: "Several dispatchers at one backlog", Unit: "a message, received and recorded", Floor: "one dispatcher: the drain of B2",
		Notes: []string{
			"The sides run in the alternation of B2. If a message arrives twice, the run is refused.",
			"For an idle replica, the transactions of its database are counted for 20 s, without rules. A replica that evaluates asks once a tick, which is once a second, which partitions it holds.",
		},
	}
	one := trial.Side{Name: sideDrain}
	r.Bars, r.BarsUnit = lab.Bars(runs, append([]trial.Side{one}, sides...)), "messages/s"
	r.Figures = append(r.Figures, report.Of(sideDrain, "messages/s", runs.Of(sideDrain, (*trial.Measure).Rate), nil))
	for _, side := range sides {
		r.Figures = append(r.Figures, report.Of(side.Name, "messages/s", runs.Of(side.Name, (*trial.Measure).Rate), nil),
			report.Of(side.Name+" over one", "×", runs.Ratios(side.Name, sideDrain), report.AtLeast(1)))
		r.Notes = append(r.Notes, lab.CPUNotes(runs, side.Name))
	}
	for _, idle := range []struct {
		roles string
		most  float64
	}{{"api,dispatch", 1}, {"api,evaluate,dispatch", 2}}[lab.Either(d.Quick, 1, 0):] {
		asked, err := d.idleAsks(ctx, idle.roles)
		if err != nil {
			return r, err
		}
		r.Figures = append(r.Figures, report.One("an idle replica asks Postgres ("+idle.roles+")", "/s", asked, report.AtMost(idle.most)))
	}
	return r, nil
}

func dispatchers(n int) string { return fmt.Sprintf("Tocsin, %d dispatchers", n) }

// together lets so many processes drain one backlog.
func (b bench) together(ctx context.Context, replicas, count int) (m trial.Measure, err error) {
	world, err := b.Engines.NewWorld(ctx)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, world.Close(ctx)) }()
	book := b.Book()
	hook, err := b.Pending(ctx, world, b.Receiver.URL(book), count)
	if err != nil {
		return m, err
	}
	processes := map[string]int{}
	var first *product.Replica
	var names []string
	for n := range replicas {
		replica, err := world.Start(ctx, "TOCSIN_ROLES=api,dispatch")
		if err != nil {
			return m, err
		}
		defer lab.End(replica.Process)
		names = append(names, fmt.Sprint("Tocsin ", n+1))
		processes[names[n]] = replica.PID()
		if first == nil {
			first = replica
		}
	}
	used, err := lab.Metered(b.Processes(processes))
	if err != nil {
		return m, err
	}
	began := time.Now()
	if err := first.EnableHook(ctx, hook); err != nil {
		return m, err
	}
	d := delivering{bench: b, count: count}
	if m, err = d.ended(ctx, world, book, begun{began, used}); err != nil {
		return m, err
	}
	busiest(m.CPU, names)
	return m, nil
}

// busiest names the process of several that computed most, which is another one in each
// trial, and adds up the others.
func busiest(used map[string]time.Duration, names []string) {
	var all, most time.Duration
	for _, name := range names {
		all += used[name]
		most = max(most, used[name])
		delete(used, name)
	}
	used["Tocsin"] = most
	if len(names) > 1 {
		used["other dispatchers"] = all - most
	}
}

// idleAsks returns how often a replica that has nothing to do asks Postgres, each second.
func (b bench) idleAsks(ctx context.Context, roles string) (perSecond float64, err error) {
	world, err := b.Engines.NewWorld(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, world.Close(ctx)) }()
	if _, err := world.Hook(ctx, b.Receiver.URL("none"), peers.Connections, true); err != nil {
		return 0, err
	}
	replica, err := world.Start(ctx, "TOCSIN_ROLES="+roles)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, replica.End()) }()
	// What it asks as it starts is over, and Postgres has counted it: it counts what a
	// connection did up to ten seconds after that has become idle.
	if err := lab.Wait(ctx, lab.Either(b.Quick, 3*time.Second, 15*time.Second)); err != nil {
		return 0, err
	}
	before, err := world.Transactions(ctx)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := lab.Wait(ctx, lab.Either(b.Quick, 5*time.Second, 20*time.Second)); err != nil {
		return 0, err
	}
	after, err := world.Transactions(ctx)
	return float64(after-before) / time.Since(began).Seconds(), err
}
