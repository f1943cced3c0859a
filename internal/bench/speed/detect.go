package speed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/bench/lab"
	"tocsin/internal/bench/peers"
	"tocsin/internal/bench/product"
	"tocsin/internal/bench/report"
)

// detect is B6: from the moment that an exchange is visible in ClickHouse to the
// arrival of its message, at two intervals between ticks.
func detect(ctx context.Context, b bench) ([]report.Result, error) {
	r := report.Result{
		ID: "B6", Title: "Detection: from visible in ClickHouse to received", Unit: "an exchange, inserted by itself at a random moment of a tick",
		Notes: []string{
			"An exchange counts as visible when its INSERT has been answered. The settle time is 0.",
			"The median of one trial is uncertain by 4 ms at a tick of 1 s and by 1 ms at 250 ms, because INSERTs vary in duration.",
		},
	}
	var err error
	for _, tick := range []time.Duration{time.Second, 250 * time.Millisecond} {
		var found lab.Percentiles
		for range min(3, b.Trials) {
			var latencies []float64
			if latencies, err = b.visibleToReceiver(ctx, tick, lab.Either(b.Quick, 20, 200)); err != nil {
				break
			}
			found.Add(latencies)
		}
		ms := float64(tick / time.Millisecond)
		r.Figures = append(r.Figures, found.Figures(fmt.Sprintf("a tick every %v", tick), report.AtMost(ms/2+10), report.AtMost(ms+25))...)
		if err != nil {
			break
		}
	}
	return []report.Result{r}, err
}

// visibleToReceiver returns in milliseconds how long after it was visible the message of each exchange came.
func (b bench) visibleToReceiver(ctx context.Context, tick time.Duration, count int) (latencies []float64, err error) {
	world, err := b.Engines.NewWorld(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, world.Close(ctx)) }()
	book := b.Book()
	hook, err := world.Hook(ctx, b.Receiver.ExecutionURL(book), peers.Connections, true)
	if err != nil {
		return nil, err
	}
	if _, err := world.Rule(ctx, []uuid.UUID{hook}); err != nil {
		return nil, err
	}
	replica, err := world.Start(ctx, "TOCSIN_TICK_INTERVAL="+tick.String())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, replica.End()) }()
	if _, err := world.AwaitCaughtUp(ctx); err != nil {
		return nil, err
	}
	visible := make(map[string]int64, count)
	for i, moment := range moments(tick, count) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Until(moment)):
		}
		now := time.Now().UnixNano()
		prefix := fmt.Sprintf("execution-%d-", i)
		if err := world.Insert(ctx, product.Exchanges{Count: 1, Prefix: prefix, StartNS: now, EndNS: now}); err != nil {
			return nil, err
		}
		visible[prefix+"0"] = time.Now().UnixNano()
	}
	if _, err := b.AwaitReceived(ctx, book, count); err != nil {
		return nil, err
	}
	return b.Latencies(ctx, book, visible)
}

// spacing is the mean time from one exchange to the next.
const spacing = 60 * time.Millisecond

// moments returns moments from now on, each at random within its part of a tick.
func moments(tick time.Duration, count int) []time.Time {
	begin, part := time.Now(), tick/time.Duration(count)
	list := make([]time.Time, count)
	for i, offset := range offsets(tick, count) {
		list[i] = begin.Add(offset + rand.N(part))
	}
	return list
}

// offsets cuts a tick into as many parts as there are moments, and meets each part
// once, in one of a whole number of ticks. So no part of a tick is met more often than
// another, wherever it begins. What error of sampling a median has is left by the INSERTs,
// which take from 7 to 17 ms, and so make exchanges visible some parts later: about 4 ms in
// a trial at a tick of 1 s, and 1 ms at 250 ms. Moments at random within each 60 ms would
// leave 10 and 5 ms. In what part of a tick an INSERT is does not change how long it takes.
func offsets(tick time.Duration, count int) []time.Duration {
	ticks := (count*int(spacing) + int(tick) - 1) / int(tick)
	// Multiples of their share of the ticks meet all parts, if there is no common divisor.
	for gcd(ticks, count) > 1 {
		ticks++
	}
	list := make([]time.Duration, count)
	for i := range list {
		list[i] = tick * time.Duration(i*ticks) / time.Duration(count)
	}
	return list
}

func gcd(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}
