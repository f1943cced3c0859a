//go:build unix

package stack

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"tocsin/cmd/devstack/internal/demo"
)

// historyHours is how many hours of traffic fill a new table, for searches and previews.
const historyHours = 1

// prepareSource makes the table of exchanges, so that Tocsin finds it, and fills a new one with
// history, which is older than any rule and raises nothing.
func (u *up) prepareSource(ctx context.Context) error {
	log, err := u.openLog("traffic.log")
	if err != nil {
		return err
	}
	table, err := demo.OpenTable(u.clickHouse.url())
	if err != nil {
		return fmt.Errorf("prepare the source: %w", err)
	}
	u.ending.add("connections of the demo traffic", func(context.Context) error { return table.Close() })
	u.traffic, err = demo.New(demo.Options{
		Target: table,
		Seed:   uint64(time.Now().UnixNano()),
		Shape:  demo.Shape{Rate: u.opts.Rate},
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		return fmt.Errorf("prepare the source: %w", err)
	}
	if u.opts.Rate <= 0 {
		return table.Create(ctx)
	}
	if _, err := u.traffic.Backfill(ctx, historyHours); err != nil {
		return fmt.Errorf("prepare the source: %w", err)
	}
	return nil
}

// startTraffic starts writing exchanges.
func (u *up) startTraffic(ctx context.Context) error {
	if u.opts.Rate <= 0 {
		return nil
	}
	lifetime, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- u.traffic.Run(lifetime) }()
	u.ending.add("demo traffic", func(context.Context) error {
		cancel()
		return <-done
	})
	u.console.Sayf("demo traffic: about %g exchanges a second", u.opts.Rate)
	return nil
}
