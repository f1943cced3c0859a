//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"tocsin/cmd/devstack/internal/stack"
	"tocsin/cmd/devstack/internal/torture"
)

// tortureCommand runs the torture, form after form and seed after seed.
type tortureCommand struct {
	Form      string        `default:"plain" help:"Form of the torture; all runs every form."`
	Seed      uint64        `default:"1" help:"First seed."`
	Seeds     uint64        `default:"1" help:"Number of seeds, one after the other."`
	Exchanges int           `help:"Number of exchanges of a seed. The default is 100,000, and 20,000 for the form receivers."`
	Length    time.Duration `default:"1m" help:"Time during which exchanges arrive."`
	Replicas  int           `default:"3" help:"Number of processes of Tocsin, at most three."`
	Timeout   time.Duration `help:"Maximum time after the last exchange until no work is left. The default is five minutes plus the length."`
	Calm      bool          `help:"Break nothing."`
	Verbose   bool          `short:"v" help:"Print what happens."`
	Keep      bool          `help:"Keep the databases and the logs. Those of a failed seed are always kept."`
}

// Help is shown by devstack torture --help.
func (tortureCommand) Help() string {
	var forms strings.Builder
	for _, form := range torture.Forms() {
		fmt.Fprintf(&forms, "\n  %-16s %s", form, form.About())
	}
	return `Replicas of Tocsin, built from the checkout around the working directory, evaluate rules and deliver messages
while processes are killed and stopped, databases restarted, connections cut, and one clock jumps. A checker that shares no
code with Tocsin then compares alerts, notifications and messages with the expected ones. A seed always gives the same exchanges,
edits and faults.

The forms are:
` + forms.String() + `

A form that cannot run on this machine fails with the reason. With --form all, it is skipped.

It needs the engines of devstack run:

  bin/devstack run -- bin/devstack torture --seeds 20
  bin/devstack run -- bin/devstack torture --form async-standby --seeds 5 --exchanges 30000`
}

// Run tortures.
func (c tortureCommand) Run(ctx context.Context) error {
	ctx, cancel := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	forms, err := c.forms()
	if err != nil {
		return err
	}
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
		Length: c.Length, Replicas: c.Replicas, Timeout: c.Timeout, Calm: c.Calm, Programs: programs, Devstack: self,
		ClickHouse: os.Getenv(stack.ChDBVariable), PostgresBin: os.Getenv(stack.PostgresBinVariable),
	}
	if c.Verbose {
		options.Log = os.Stderr
	}
	kept := c.Keep
	for _, form := range forms {
		options.Form, options.Exchanges = form, cmp.Or(c.Exchanges, form.Exchanges())
		for nth := range c.Seeds {
			if err != nil {
				break
			}
			options.Seed = c.Seed + nth
			options.Dir = filepath.Join(base, fmt.Sprintf("%s-%d", form, options.Seed))
			options.Progress = func(text string) {
				_, _ = fmt.Fprintf(os.Stderr, "%s seed %d (%d of %d) at %s\n", form, c.Seed+nth, nth+1, c.Seeds, text)
			}
			var failed bool
			failed, err = c.once(ctx, options, os.Stdout)
			switch {
			case failed:
				kept = true
			case !c.Keep:
				_ = os.RemoveAll(options.Dir)
			}
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

// forms are those to run. One that is asked for by name and cannot run is an error.
func (c tortureCommand) forms() ([]torture.Form, error) {
	if c.Form != "all" {
		form := torture.Form(c.Form)
		if err := form.Needs(); err != nil {
			return nil, fmt.Errorf("THE FORM %s DID NOT RUN: %w", strings.ToUpper(c.Form), err)
		}
		return []torture.Form{form}, nil
	}
	var forms []torture.Form
	for _, form := range torture.Forms() {
		if err := form.Needs(); err != nil {
			fmt.Printf("THE FORM %s DID NOT RUN: %v\n", strings.ToUpper(string(form)), err)
			continue
		}
		forms = append(forms, form)
	}
	return forms, nil
}

// once tortures with one seed, prints its line, and says whether the seed failed.
func (c tortureCommand) once(ctx context.Context, o torture.Options, out io.Writer) (failed bool, err error) {
	if err := os.Mkdir(o.Dir, 0o711); err != nil { //nolint:gosec // Postgres may run as another user, who passes through
		return false, err
	}
	began := time.Now()
	report, err := torture.Run(ctx, o)
	if err != nil {
		return true, fmt.Errorf("%s seed %d: %w", o.Form, o.Seed, err)
	}
	_, err = fmt.Fprintf(out, "%v (%v)\n", report, time.Since(began).Round(time.Second))
	if !report.OK() {
		more := ""
		if o.Calm {
			more = " --calm"
		}
		if c.Replicas < 3 {
			more += fmt.Sprintf(" --replicas %d", c.Replicas)
		}
		_, _ = fmt.Fprintf(out, "  again: make torture ARGS='--form %s --seed %d --exchanges %d --length %v%s -v'\n",
			o.Form, o.Seed, o.Exchanges, o.Length, more)
	}
	return !report.OK(), err
}
