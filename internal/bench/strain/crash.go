package strain

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"tocsin/internal/bench/lab"
	"tocsin/internal/bench/product"
	"tocsin/internal/bench/report"
)

const (
	crashLease      = 2 * time.Second
	crashConcurrent = 16
)

// crash is B10: a dispatcher that is killed again and again while it drains.
func crash(ctx context.Context, b bench) ([]report.Result, error) {
	r := report.Result{
		ID: "B10", Title: "Crashes: a dispatcher that is killed while it drains", Unit: "a message",
		Notes: []string{
			fmt.Sprintf("The receiver takes 10 ms, the webhook has %d attempts at a time, and the lease is %v. Each process is killed (SIGKILL) at random within 0.2 s of its first message.",
				crashConcurrent, crashLease),
			"An attempt is in flight from the commit of its beginning to the commit of its outcome. Postgres records attempts of killed processes as having no known outcome. Only their messages may arrive twice.",
			"At the last kill, few messages are left. The time from then until all are recorded includes the start of the next process.",
		},
	}
	found, err := b.kills(ctx, lab.Either(b.Quick, 10, 100), lab.Either(b.Quick, 1_500, 20_000))
	if err != nil {
		return []report.Result{r}, err
	}
	r.Figures = []report.Figure{
		report.One("kills", "", float64(found.kills), nil),
		report.One("messages lost", "", float64(found.lost), report.AtMost(0)),
		report.One("attempts in flight at the kill, all kills", "", float64(found.underWay), nil),
		report.One("messages repeated", "", float64(found.repeats), report.AtMost(float64(found.underWay))),
		report.One("repeated for each kill", "", float64(found.repeats)/float64(found.kills), nil),
		report.One("drained after the last kill", "s", found.drained.Seconds(), report.AtMost((crashLease + time.Second).Seconds())),
	}
	return []report.Result{r}, nil
}

// killed is what kills did.
type killed struct {
	kills, lost, repeats int
	// underWay counts the attempts that were under way at the kills.
	underWay int64
	drained  time.Duration
}

// unknown counts the attempts whose outcome nobody stored.
const unknown = `select count(*) from attempt where verdict is null`

func (b bench) kills(ctx context.Context, kills, count int) (k killed, err error) {
	world, err := b.Engines.NewWorld(ctx)
	if err != nil {
		return k, err
	}
	defer func() { err = errors.Join(err, world.Close(ctx)) }()
	book := b.Book()
	hook, err := lab.PendingWith(ctx, world, b.Receiver.SlowURL(book), crashConcurrent, count)
	if err != nil {
		return k, err
	}
	if err := world.Exec(ctx, "update webhook set enabled = true where webhook_id = $1", hook); err != nil {
		return k, err
	}
	const few = 300
	start := func() (*product.Replica, error) {
		return world.Start(ctx, "TOCSIN_ROLES=dispatch", "TOCSIN_LEASE="+crashLease.String(), "TOCSIN_POLL_INTERVAL=100ms", "TOCSIN_HEARTBEAT_INTERVAL=1s")
	}
	for had := 0; k.kills < kills-1 && count-had > few; {
		replica, err := start()
		if err != nil {
			return k, err
		}
		// What the last one held comes back when its lease expires.
		if _, err = b.Receiver.Await(ctx, book, had+1, 2*crashLease); err == nil {
			err = lab.Wait(ctx, rand.N(200*time.Millisecond))
		}
		replica.Kill()
		k.kills++
		if err != nil {
			return k, err
		}
		now, err := b.Receiver.Await(ctx, book, 0, 0)
		if err != nil {
			return k, err
		}
		had = now.Distinct
	}
	replica, err := start()
	if err != nil {
		return k, err
	}
	_, err = b.AwaitReceived(ctx, book, count-few/2)
	replica.Kill()
	k.kills++
	if err != nil {
		return k, err
	}
	began := time.Now()
	if replica, err = start(); err != nil {
		return k, err
	}
	defer func() { err = errors.Join(err, replica.End()) }()
	recorded, err := world.AwaitRecorded(ctx, count)
	if err != nil {
		return k, err
	}
	k.drained = recorded.Sub(began)
	got, err := b.Receiver.Await(ctx, book, 0, 0)
	k.lost, k.repeats = count-got.Distinct, got.Repeats
	if err != nil {
		return k, err
	}
	if k.underWay, err = world.Number(ctx, unknown); err != nil {
		return k, err
	}
	if n, err := world.Number(ctx, product.Delivered); err != nil || n != int64(count) {
		return k, errors.Join(err, fmt.Errorf("%d of %d are recorded as delivered", n, count))
	}
	return k, nil
}
