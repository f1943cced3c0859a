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

// several is B12: one, two and four dispatchers at the same backlog, and an idle one.
func several(ctx context.Context, b bench) ([]report.Result, error) {
	count := lab.Either(b.Quick, 2_000, 40_000)
	sizes := lab.Either(b.Quick, []int{1, 2}, []int{1, 2, 4})
	var sides []trial.Side
	for _, n := range sizes {
		sides = append(sides, trial.Side{Name: dispatchers(n), Run: func(ctx context.Context, _ int) (trial.Measure, error) {
			return b.together(ctx, n, count)
		}})
	}
	runs, err := trial.Alternate(ctx, sides, b.Trials, b.Tell)
	r := report.Result{
		ID: "B12", Title: "Several dispatchers at one backlog", Unit: "a message, received and recorded", Floor: "one dispatcher",
		Bars: lab.Bars(runs, sides), BarsUnit: "messages/s",
		Notes: []string{"A message that came twice refuses the run. What an idle replica asks is counted as transactions of its database, within 20 s, with no rule."},
	}
	for _, n := range sizes {
		r.Figures = append(r.Figures, report.Of(dispatchers(n), "messages/s", runs.Of(dispatchers(n), (*trial.Measure).Rate), nil))
		if n > 1 {
			r.Figures = append(r.Figures, report.Of(dispatchers(n)+" over one", "×", runs.Ratios(dispatchers(n), dispatchers(1)), report.AtLeast(1)))
		}
		r.Notes = append(r.Notes, lab.CPUNotes(runs, dispatchers(n)))
	}
	if err != nil {
		return []report.Result{r}, err
	}
	for _, roles := range []string{"dispatch", "api,dispatch", "api,evaluate,dispatch"}[:lab.Either(b.Quick, 1, 3)] {
		asked, err := b.idleAsks(ctx, roles)
		if err != nil {
			return []report.Result{r}, err
		}
		r.Figures = append(r.Figures, report.One("an idle replica asks Postgres ("+roles+")", "/s", asked, report.AtMost(1)))
	}
	return []report.Result{r}, nil
}

func dispatchers(n int) string {
	if n == 1 {
		return "Tocsin, 1 dispatcher"
	}
	return fmt.Sprintf("Tocsin, %d dispatchers", n)
}

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
