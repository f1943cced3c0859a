//go:build unix

package main

import (
	"context"
	"fmt"
	"os"

	"tocsin/cmd/devstack/internal/stack"
)

type upCommand struct {
	Data            string   `type:"path" default:".devstack" placeholder:"DIR" help:"Directory of the data, which is kept between starts (${default})."`
	Reset           bool     `help:"Delete the data in the directory first."`
	Port            int      `placeholder:"PORT" help:"Port of the web application, on 127.0.0.1. The default is the port of the previous start, or a free one."`
	Tocsin          string   `type:"path" placeholder:"PATH" help:"Program to run. By default, cmd/tocsin of the checkout is built."`
	NoTraffic       bool     `help:"Produce no demo exchanges."`
	Rate            float64  `default:"15" help:"Number of demo exchanges per second (${default})."`
	PostgresSetting []string `placeholder:"NAME=VALUE" sep:"none" help:"Setting of Postgres, such as log_statement=all. May be repeated."`
}

// Help is shown by devstack up --help.
func (upCommand) Help() string {
	return `Starts PostgreSQL, ClickHouse, a look-alike of Slack, a mailbox and Tocsin, creates a few rules, and produces
exchanges of an imaginary company, some of which fail. When everything runs, it prints the URL of the web application. SIGINT (Ctrl-C)
or SIGTERM stops everything in order; a second signal kills everything. The data stays in the directory, and the logs are in DIR/logs.`
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
