//go:build unix

package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"tocsin/cmd/devstack/internal/chserver"
)

// clickHouseCommand is the process with the ClickHouse engine. A process can only have one engine,
// and a separate process can be killed and started again.
type clickHouseCommand struct {
	Library string `required:"" help:"Path of libchdb.so."`
	Data    string `required:"" help:"Directory of the tables."`
	Listen  string `default:"127.0.0.1:0" help:"Address to listen on."`
	Tether  bool   `help:"End when standard input ends."`
}

// garbagePercent is how much the heap of Go may grow before it is collected, in percent. The engine's memory is many times as
// large, and each request leaves garbage.
const garbagePercent = 2000

// Run serves until a signal comes.
func (c clickHouseCommand) Run(ctx context.Context) error {
	debug.SetGCPercent(garbagePercent)
	ctx, cancel := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	if c.Tether {
		// The other end belongs to devstack; it is closed when devstack ends, however that happens.
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	return chserver.Run(ctx, chserver.Options{
		Library: c.Library,
		DataDir: c.Data,
		Listen:  c.Listen,
		Logger:  logger,
		Ready: func(addr string) {
			logger.InfoContext(ctx, "ClickHouse accepts requests", slog.String("addr", addr))
		},
	})
}
