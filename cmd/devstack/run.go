//go:build unix

package main

import (
	"context"
	"errors"
	"os"

	"tocsin/cmd/devstack/internal/stack"
)

type runCommand struct {
	Durable         bool     `help:"Have Postgres write to the disk as in production (fsync, synchronous commit); without it, the data being thrown away, it does not."`
	PostgresSetting []string `placeholder:"NAME=VALUE" sep:"none" help:"Add a setting to Postgres's, such as log_statement=all. May be repeated."`
	Command         []string `arg:"" passthrough:"" name:"command" help:"The command and its arguments, perhaps after --."`
}

// Help is shown by devstack run --help.
func (runCommand) Help() string {
	return `The command finds the databases in its environment, and the look-alike of Slack, whose page shows the messages:

  TOCSIN_TEST_POSTGRES_URL       a superuser of an empty cluster, who may create databases
  TOCSIN_TEST_CLICKHOUSE_URL     ClickHouse's HTTP interface
  TOCSIN_DEVSTACK_CHDB           the ClickHouse engine, libchdb.so
  TOCSIN_DEVSTACK_POSTGRES_BIN   the directory of initdb, pg_ctl and postgres
  TOCSIN_DEVSTACK_SLACK_URL      an incoming webhook of the look-alike of Slack

SIGINT, SIGTERM and SIGHUP go to the command; a second one kills it. The databases stop, and their data is removed, when
the command has ended. These are in memory (/dev/shm) where 4 GB are free, unless TMPDIR names a directory or --durable is given. The exit code is the command's, 128 and the signal's number when a signal ended it, 127 when
there is no such command, and 125 when devstack itself fails.

Example: devstack run -- go test ./...`
}

// Run runs the command.
func (c runCommand) Run(ctx context.Context, console *stack.Console) error {
	command := c.Command
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	if len(command) == 0 {
		return &exitError{code: stack.ExitTrouble, err: errors.New("no command given: name one after --, see devstack run --help")}
	}
	code, err := stack.Run(ctx, console, stack.RunOptions{
		Command:          command,
		Durable:          c.Durable,
		PostgresSettings: c.PostgresSetting,
		Terminal:         onTerminal(os.Stderr),
	})
	if code != 0 || err != nil {
		return &exitError{code: max(code, 1), err: err}
	}
	return nil
}
