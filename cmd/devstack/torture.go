//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"tocsin/cmd/devstack/internal/stack"
	"tocsin/cmd/devstack/internal/torture"
)

// tortureCommand runs the torture, seed after seed.
type tortureCommand struct {
	Seed      uint64        `default:"1" help:"The first seed."`
	Seeds     uint64        `default:"1" help:"How many seeds, one after the other."`
	Exchanges int           `default:"100000" help:"How many exchanges a seed makes."`
	Length    time.Duration `default:"5m" help:"How long exchanges keep coming."`
	Calm      bool          `help:"Break nothing."`
	Verbose   bool          `short:"v" help:"Say what happens, while it does."`
	Keep      bool          `help:"Keep the databases and the logs. Those of a seed that failed are kept always."`
}

// Help is shown by devstack torture --help.
func (tortureCommand) Help() string {
	return `Three replicas of Tocsin, built from the checkout around the working directory, evaluate rules and deliver messages
while processes are killed and stopped, databases restarted, connections cut, and one clock jumps. A checker that shares no
code with Tocsin then compares alerts, notifications and messages with what had to be. A seed makes the same exchanges, edits
and faults again.

It runs beside the engines of devstack run: bin/devstack run -- bin/devstack torture --seeds 20`
}

// Run tortures.
func (c tortureCommand) Run(ctx context.Context) error {
	ctx, cancel := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	base, err := torture.Scratch()
	if err != nil {
		return err
	}
	programs, err := torture.Build(ctx, root, base)
	if err != nil {
		return errors.Join(err, os.RemoveAll(base))
	}
	options := torture.Options{
		Exchanges: c.Exchanges, Length: c.Length, Calm: c.Calm, Programs: programs, Devstack: self,
		ClickHouse: os.Getenv(stack.ChDBVariable), PostgresBin: os.Getenv(stack.PostgresBinVariable),
	}
	if c.Verbose {
		options.Tell = os.Stderr
	}
	kept := c.Keep
	for seed := c.Seed; seed < c.Seed+c.Seeds && err == nil; seed++ {
		options.Seed, options.Dir = seed, filepath.Join(base, fmt.Sprint(seed))
		var failed bool
		failed, err = c.once(ctx, options, os.Stdout)
		switch {
		case failed:
			kept = true
		case !c.Keep:
			_ = os.RemoveAll(options.Dir)
		}
	}
	if kept {
		fmt.Printf("databases and logs: %s\n", base)
		if err == nil && !c.Keep {
			err = errors.New("the checker found something")
		}
		return err
	}
	return errors.Join(err, os.RemoveAll(base))
}

// once tortures with one seed, prints its line, and says whether the seed failed.
func (c tortureCommand) once(ctx context.Context, o torture.Options, out io.Writer) (failed bool, err error) {
	if err := os.Mkdir(o.Dir, 0o711); err != nil { //nolint:gosec // Postgres may run as another user, who passes through
		return false, err
	}
	began := time.Now()
	report, err := torture.Run(ctx, o)
	if err != nil {
		return true, fmt.Errorf("seed %d: %w", o.Seed, err)
	}
	_, err = fmt.Fprintf(out, "%v (%v)\n", report, time.Since(began).Round(time.Second))
	if !report.OK() {
		more := ""
		if o.Calm {
			more = " --calm"
		}
		_, _ = fmt.Fprintf(out, "  again: make torture ARGS='--seed %d --exchanges %d --length %v%s -v'\n", o.Seed, o.Exchanges, o.Length, more)
	}
	return !report.OK(), err
}
