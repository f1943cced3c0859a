package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tocsin/internal/bench/lab"
	"tocsin/internal/bench/product"
	"tocsin/internal/bench/report"
	"tocsin/notify"
)

// health is L8: many rules fail and recover together with their source.
func health(ctx context.Context, b bench) ([]report.Result, error) {
	rules := lab.Either(b.Quick, 1000, 10_000)
	r := report.Result{
		ID: "L8", Title: fmt.Sprintf("Health: %s rules fail and recover with their source", report.Number(float64(rules))), Unit: "an outage",
		Notes: []string{
			"ClickHouse is cut off until the failure is announced, which takes 30 s, and for some seconds more. There is one webhook for operators. The recovery is measured from when ClickHouse can be reached again, with a tick every 100 ms.",
		},
	}
	o, err := b.fails(ctx, rules)
	if err != nil {
		return []report.Result{r}, err
	}
	r.Figures = []report.Figure{
		report.One("the failure is announced after", "s", o.failing.Seconds(), nil),
		report.One("the recovery is committed after", "s", o.recovered.Seconds(), report.AtMost(1)),
		report.One("events of the source: alerts", "", float64(o.alerts), report.AtMost(1)),
		report.One("messages about the failure", "", float64(o.failingMessages), report.AtMost(1)),
		report.One("messages about the recovery", "", float64(o.recoveredMessages), report.AtMost(1)),
		report.One("events of single rules", "", float64(o.ofRules), report.AtMost(0)),
	}
	return []report.Result{r}, nil
}

// outageEvents are the consequences of an outage.
type outageEvents struct {
	failing, recovered                                  time.Duration
	alerts, failingMessages, recoveredMessages, ofRules int64
}

func (b bench) fails(ctx context.Context, rules int) (o outageEvents, err error) {
	world, err := b.Engines.NewWorld(ctx)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, world.Close(ctx)) }()
	book := b.Book()
	if _, err := world.AddHook(ctx, notify.Webhook{URL: b.Receiver.URL(book), Enabled: true, Operators: true}); err != nil {
		return o, err
	}
	if _, err := world.Rule(ctx, nil, "orders"); err != nil {
		return o, err
	}
	if err := world.Crowd(ctx, rules-1); err != nil {
		return o, err
	}
	proxy, err := world.NewProxy(ctx)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, proxy.Close()) }()
	replica, err := world.Start(ctx, world.Through(proxy), "TOCSIN_TICK_INTERVAL=100ms")
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, replica.End()) }()
	if _, err := world.AwaitCaughtUp(ctx); err != nil {
		return o, err
	}
	proxy.Cut()
	cut := time.Now()
	announced := func(n int64) func() (bool, error) {
		return func() (bool, error) {
			now, err := world.Number(ctx, "select count(*) from announcement")
			return now == n, err
		}
	}
	wait, cancel := context.WithTimeout(ctx, lab.Timeout)
	defer cancel()
	if _, err := product.Await(wait, announced(1)); err != nil {
		return o, fmt.Errorf("await that the failure is announced: %w", err)
	}
	o.failing = time.Since(cut)
	if err := lab.Wait(ctx, 3*time.Second); err != nil {
		return o, err
	}
	proxy.Restore()
	back := time.Now()
	if _, err := product.Await(wait, announced(0)); err != nil {
		return o, fmt.Errorf("await that the recovery is announced: %w", err)
	}
	o.recovered = time.Since(back)
	if _, err := world.AwaitCaughtUp(ctx); err != nil {
		return o, err
	}
	for query, into := range map[string]*int64{
		"select count(*) from alert where source is not null":                                                       &o.alerts,
		"select count(*) from notification where reason = 'SOURCE_FAILING'":                                         &o.failingMessages,
		"select count(*) from notification where reason = 'SOURCE_RECOVERED'":                                       &o.recoveredMessages,
		"select (select count(*) from rule_failing) + (select count(*) from alert where health and source is null)": &o.ofRules,
	} {
		if *into, err = world.Number(ctx, query); err != nil {
			return o, err
		}
	}
	if o.failingMessages != 1 || o.recoveredMessages != 1 {
		return o, fmt.Errorf("operators were sent %d messages that the source fails and %d that it has recovered, want one each", o.failingMessages, o.recoveredMessages)
	}
	_, err = b.AwaitReceived(ctx, book, 2)
	return o, err
}
