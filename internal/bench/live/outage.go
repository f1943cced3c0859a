package live

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tocsin/internal/bench/lab"
	"tocsin/internal/bench/product"
	"tocsin/internal/bench/report"
	"tocsin/notify"
)

const (
	// outageRate is how many messages per second each receiver accepts.
	outageRate = 5
	// failedEvery means that one in so many exchanges of the outage failed.
	failedEvery = 20
)

// outage is L2: ClickHouse comes back after an hour in which it could not be reached.
func outage(ctx context.Context, b bench) ([]report.Result, error) {
	count := lab.Either(b.Quick, 36_000, 720_000)
	r := report.Result{
		ID: "L2", Title: fmt.Sprintf("Outage: ClickHouse comes back after an hour with %s exchanges", report.Number(float64(count))),
		Unit: fmt.Sprintf("an outage of an hour, with %s failures", report.Number(float64(count/failedEvery))),
		Notes: []string{
			about, fmt.Sprintf("Each takes %d messages a second (the webhook's rate).", outageRate),
			"The cursor is an hour back, and the rules were armed before that. The replica runs while ClickHouse is cut off. All times are counted from when ClickHouse can be reached again. From then on, a new failure is written every 100 ms.",
			"What the rates allow is the time that the receiver with most messages needs at its rate.",
		},
	}
	c, err := b.comeback(ctx, count)
	if err != nil {
		return []report.Result{r}, err
	}
	allowed := float64(c.most) / outageRate
	r.Figures = []report.Figure{
		report.One("the first new failure is alerted after", "s", c.first.Seconds(), report.AtMost(3)),
		report.Of("a new failure is alerted, counted from when it is visible", "s", c.fresh, nil),
		report.One("all of the outage is raised after", "s", c.raised.Seconds(), report.AtMost(20)),
		report.One("all is delivered after", "s", c.delivered.Seconds(), nil),
		report.One("the receivers' rates allow", "s", allowed, nil),
		report.One("delivered over what the rates allow", "×", c.delivered.Seconds()/allowed, report.AtMost(1.1)),
	}
	return []report.Result{r}, nil
}

// comeback is what was measured of an outage's end, from there on.
type comeback struct {
	first, raised, delivered time.Duration
	// fresh is how long after it became visible each new failure was alerted, in seconds.
	fresh []float64
	// most is the number of messages of the webhook with the most.
	most int64
}

func (b bench) comeback(ctx context.Context, count int) (c comeback, err error) {
	world, err := b.Engines.NewWorld(ctx)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, world.Close(ctx)) }()
	book := b.Book()
	if err := b.far(ctx, world, book, notify.Webhook{RatePerSecond: outageRate}); err != nil {
		return c, err
	}
	past := product.Past{Count: int64(count), Span: time.Hour, FailedEvery: failedEvery, Applications: farHooks}
	if err := errors.Join(world.LeftBehind(ctx, time.Hour), world.History(ctx, past)); err != nil {
		return c, err
	}
	proxy, err := world.NewProxy(ctx)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, proxy.Close()) }()
	proxy.Cut()
	replica, err := world.Start(ctx, world.Through(proxy), retryQuickly)
	if err != nil {
		return c, err
	}
	defer replica.Kill()
	if err := lab.Wait(ctx, 3*time.Second); err != nil {
		return c, err
	}
	proxy.Restore()
	back := time.Now()
	old := count / failedEvery
	visible, err := world.TrickleUntil(ctx, "new-", farHooks, func() (bool, error) {
		n, err := world.Number(ctx, "select count(*) from alert where execution_id like 'past-%'")
		return n >= int64(old), err
	})
	if err != nil {
		return c, err
	}
	total := old + len(visible)
	if _, err := b.AwaitReceived(ctx, book, total); err != nil {
		return c, err
	}
	if err := b.Complete(ctx, book, total); err != nil {
		return c, err
	}
	return c, b.account(ctx, world, &c, reckoning{book: book, back: back, visible: visible})
}

// reckoning is what is known about the end of an outage without the product.
type reckoning struct {
	book    string
	back    time.Time
	visible map[string]int64
}

// account reads when alerts were committed and messages received.
func (b bench) account(ctx context.Context, world *product.World, c *comeback, r reckoning) error {
	commits, err := world.Commits(ctx)
	if err != nil {
		return err
	}
	for id, at := range commits {
		after := time.Unix(0, at).Sub(r.back)
		if !strings.HasPrefix(id, "new-") {
			c.raised = max(c.raised, after)
			continue
		}
		if c.first == 0 || after < c.first {
			c.first = after
		}
		c.fresh = append(c.fresh, time.Duration(at-r.visible[id]).Seconds())
	}
	got, err := b.Receiver.Await(ctx, r.book, 0, 0)
	if err != nil {
		return err
	}
	c.delivered = time.Unix(0, got.LastNS).Sub(r.back)
	c.most, err = world.Number(ctx, "select coalesce(max(n), 0) from (select count(*) as n from notification group by webhook_id) w")
	return err
}
