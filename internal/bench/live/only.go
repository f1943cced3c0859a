package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/bench/lab"
	"tocsin/internal/bench/product"
	"tocsin/internal/bench/report"
	"tocsin/internal/bench/trial"
	"tocsin/notify"
)

// backlogHooks is the number of webhooks with backlogs.
const backlogHooks = 100

// only is L3: the only message of a webhook, while others have backlogs.
func only(ctx context.Context, b bench) ([]report.Result, error) {
	each := lab.Either(b.Quick, 60, 400)
	r := report.Result{
		ID: "L3", Title: "Fairness: the only message of a webhook, beside 100 webhooks with backlogs", Unit: "a message to a webhook that has no other",
		Floor: "the same without backlogs",
		Notes: []string{
			fmt.Sprintf("Each of the 100 has %d messages when the replica starts. Its receiver answers within 20 to 500 ms, as in L1, and is called as many times at once as a webhook's default allows. The other webhook gets one message every 100 ms, so that no message waits for another one of that webhook. Its receiver answers at once, over TLS. The result is the time from commit to receiver.", each),
			"A run is refused if a backlog ended before the last of these messages arrived.",
		},
	}
	var alone, beside lab.Percentiles
	var ratios []float64
	for nth := range lab.Either(b.Quick, 1, min(3, b.Trials)) {
		var p99 [2]float64
		for i := range 2 {
			backlog := (i + nth) % 2
			latencies, err := b.single(ctx, backlog*each, lab.Either(b.Quick, 20, 100))
			if err != nil {
				return []report.Result{r}, err
			}
			p99[backlog] = trial.Quantile(latencies, 0.99)
			into := &alone
			if backlog == 1 {
				into = &beside
			}
			into.Add(latencies)
		}
		ratios = append(ratios, p99[1]/p99[0])
	}
	r.Figures = append(r.Figures, alone.Figures("commit to receiver, alone", nil, nil)...)
	r.Figures = append(r.Figures, beside.Figures("commit to receiver, beside backlogs", nil, nil)...)
	r.Figures = append(r.Figures, report.Of("p99 over p99 alone", "×", ratios, report.AtMost(1.5)))
	return []report.Result{r}, nil
}

// single returns how long after its commit each message of a webhook arrived, in milliseconds, with
// the given number of messages queued for each of the others.
func (b bench) single(ctx context.Context, backlog, count int) (latencies []float64, err error) {
	world, err := b.Engines.NewWorld(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, world.Close(ctx)) }()
	others := b.Book()
	if backlog > 0 {
		if err := b.backlog(ctx, world, others, backlog); err != nil {
			return nil, err
		}
	}
	book := b.Book()
	hook, err := world.AddHook(ctx, notify.Webhook{URL: b.Receiver.HostURL(farHooks, book), Enabled: true, BodyTemplate: template})
	if err != nil {
		return nil, err
	}
	if _, err := world.Rule(ctx, []uuid.UUID{hook}, "orders"); err != nil {
		return nil, err
	}
	replica, err := world.Start(ctx, "TOCSIN_TICK_INTERVAL=25ms", retryQuickly)
	if err != nil {
		return nil, err
	}
	defer replica.Kill()
	if err := world.Steady(ctx, count, 100*time.Millisecond); err != nil {
		return nil, err
	}
	if _, err := b.AwaitReceived(ctx, book, count); err != nil {
		return nil, err
	}
	if backlog > 0 {
		got, err := b.Receiver.Await(ctx, others, 0, 0)
		if err == nil && got.Distinct+got.Unknown >= backlogHooks*backlog {
			err = errors.New("the backlogs ended too soon")
		}
		if err != nil {
			return nil, err
		}
	}
	commits, err := world.Commits(ctx)
	if err != nil {
		return nil, err
	}
	from := make(map[string]int64, count)
	for n := range count {
		id := fmt.Sprintf("execution-%d", n)
		from[id] = commits[id]
	}
	return b.Latencies(ctx, book, from)
}

// backlog queues the given number of messages for each of the other webhooks.
func (b bench) backlog(ctx context.Context, world *product.World, book string, each int) error {
	hooks := make([]uuid.UUID, backlogHooks)
	var err error
	for n := range hooks {
		if hooks[n], err = world.AddHook(ctx, notify.Webhook{URL: b.Receiver.FarURL(n, book), Enabled: true, BodyTemplate: template}); err != nil {
			return err
		}
	}
	if _, err := world.Rule(ctx, hooks, "nothing"); err != nil {
		return err
	}
	committer, err := world.Committer(ctx)
	if err != nil {
		return err
	}
	for left := each; left > 0; left -= 20 {
		if err := committer.Commit(ctx, committer.Page(min(left, 20))); err != nil {
			return err
		}
	}
	return errors.Join(committer.Release(ctx), world.Exec(ctx, "analyze"))
}
