//go:build unix

package main

import (
	"context"
	"fmt"
	"os"

	"tocsin/cmd/devstack/internal/stack"
)

type upCommand struct {
	Data            string   `type:"path" default:".devstack" placeholder:"DIR" help:"Directory that keeps everything from one start to the next (${default})."`
	Reset           bool     `help:"Delete what the directory holds, and start again."`
	Port            int      `placeholder:"PORT" help:"Port of the page, on 127.0.0.1. Without it, that of the last start, or any free one."`
	Tocsin          string   `type:"path" placeholder:"PATH" help:"Program to run; without it, cmd/tocsin of the checkout is built."`
	NoTraffic       bool     `help:"Produce no demo exchanges."`
	Rate            float64  `default:"15" help:"Demo exchanges a second (${default})."`
	PostgresSetting []string `placeholder:"NAME=VALUE" sep:"none" help:"Add a setting to Postgres's, such as log_statement=all. May be repeated."`
}

// Help is shown by devstack up --help.
func (upCommand) Help() string {
	return `Starts PostgreSQL, ClickHouse, a look-alike of Slack, a mailbox and Tocsin, creates a few rules, and produces
exchanges of an imaginary company, some of which fail. When everything runs, it prints the address of the web application. SIGINT (Ctrl-C)
or SIGTERM stops everything in order; a second signal kills it. The data stays in the directory, and the logs are in DIR/logs.`
}

// Run runs everything until a signal comes.
func (c upCommand) Run(ctx context.Context, console *stack.Console) error {
	rate := c.Rate
	if c.NoTraffic {
		rate = 0
	}
	return stack.Up(ctx, console, stack.UpOptions{
		DataDir:          c.Data,
		Reset:            c.Reset,
		Port:             c.Port,
		Tocsin:           c.Tocsin,
		Rate:             rate,
		PostgresSettings: c.PostgresSetting,
		Terminal:         onTerminal(os.Stderr),
	}, func(url string) {
		_, _ = fmt.Fprintln(os.Stdout, url)
	})
}
