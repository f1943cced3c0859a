//go:build unix

package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"tocsin/cmd/devstack/internal/engines"
	"tocsin/cmd/devstack/internal/pgserver"
	"tocsin/cmd/devstack/internal/proc"
)

// The environment that Run gives its command.
const (
	PostgresURLVariable   = "TOCSIN_TEST_POSTGRES_URL"
	ClickHouseURLVariable = "TOCSIN_TEST_CLICKHOUSE_URL"
	ChDBVariable          = "TOCSIN_DEVSTACK_CHDB"
	PostgresBinVariable   = "TOCSIN_DEVSTACK_POSTGRES_BIN"
	SlackURLVariable      = "TOCSIN_DEVSTACK_SLACK_URL"
)

// Exit codes of Run itself, as in env(1). All others are those of the command.
const (
	ExitTrouble  = 125
	ExitNotFound = 127
)

// stopBound is how long everything together may take to stop.
const stopBound = 90 * time.Second

// RunOptions says what to run in addition to the engines.
type RunOptions struct {
	// Command is the program and its arguments.
	Command []string
	// Durable makes Postgres write to the disk as in production.
	Durable bool
	// PostgresSettings are added to the server's, such as "work_mem=64MB".
	PostgresSettings []string
	// Terminal says that devstack's standard error is a terminal.
	Terminal bool
}

// Run starts temporary engines and a look-alike of Slack, runs a command that finds them in its environment, and stops and
// removes them when the command has ended. It returns the command's exit code; 128 plus the number
// of the signal if a signal ended it. Signals go to the command's process group; a second one kills
// it.
func Run(ctx context.Context, console *Console, opts RunOptions) (code int, err error) {
	program, err := exec.LookPath(opts.Command[0])
	if err != nil {
		return ExitNotFound, fmt.Errorf("run %s: %w", opts.Command[0], err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals := newRelay(func(syscall.Signal) { cancel() })
	defer signals.stop()

	var ending cleanups
	defer func() {
		stopCtx, stopped := context.WithTimeout(context.WithoutCancel(ctx), stopBound)
		defer stopped()
		signals.to(func(syscall.Signal) { stopped() })
		err = errors.Join(err, ending.run(stopCtx))
		if sig := signals.received(); err != nil && sig != 0 {
			code, err = 128+int(sig), nil
		}
	}()

	env, err := startThrowAway(ctx, console, opts, &ending)
	if err != nil {
		return ExitTrouble, err
	}
	child, err := proc.Start(proc.Options{
		Path:         program,
		Args:         opts.Command[1:],
		Env:          append(os.Environ(), env...),
		Stdin:        os.Stdin,
		Stdout:       os.Stdout,
		Stderr:       os.Stderr,
		Terminal:     proc.Terminal(os.Stdin),
		OrphanSignal: syscall.SIGTERM,
	})
	if err != nil {
		return ExitTrouble, err
	}
	forward := forwarding(child)
	if sig := signals.to(forward); sig != 0 {
		forward(sig)
	}
	<-child.Done()
	return child.ExitCode(), nil
}

// forwarding passes on the first signal and kills at the next one.
func forwarding(child *proc.Child) func(syscall.Signal) {
	var again atomic.Bool
	return func(sig syscall.Signal) {
		if again.Swap(true) {
			sig = syscall.SIGKILL
		}
		_ = child.Signal(sig)
	}
}

// startThrowAway starts both engines in a temporary directory, and the look-alike of Slack, and
// returns the environment variables with their addresses.
func startThrowAway(ctx context.Context, console *Console, opts RunOptions, ending *cleanups) ([]string, error) {
	found, err := bringEngines(ctx, console, opts.Terminal)
	if err != nil {
		return nil, err
	}
	program, err := self()
	if err != nil {
		return nil, err
	}
	scratch, err := newScratch(console, opts.Durable)
	if err != nil {
		return nil, err
	}
	ending.add("scratch directory", func(context.Context) error { return scratch.remove() })

	var postgres *supervisor
	var server *pgserver.Server
	var click *supervisor
	var clickServer *clickHouse
	var starting errgroup.Group
	starting.Go(func() (err error) {
		log, err := openLog(scratch.dir, "postgres.log")
		if err != nil {
			return err
		}
		postgres, server, err = supervisePostgres(ctx, console, pgserver.Options{
			BinDir:    found.PostgresBin,
			DataDir:   filepath.Join(scratch.dir, "postgres"),
			ThrowAway: !opts.Durable,
			Settings:  opts.PostgresSettings,
			Log:       log,
		})
		return err
	})
	starting.Go(func() (err error) {
		log, err := openLog(scratch.dir, "clickhouse.log")
		if err != nil {
			return err
		}
		click, clickServer, err = superviseClickHouse(ctx, console, clickHouseOptions{
			Self:    program,
			Library: found.ChDB,
			DataDir: filepath.Join(scratch.dir, "clickhouse"),
			Log:     log,
		})
		return err
	})
	err = starting.Wait()
	if postgres != nil {
		ending.add("Postgres", postgres.Stop)
	}
	if click != nil {
		ending.add("ClickHouse", click.Stop)
	}
	if err != nil {
		return nil, err
	}
	slack, slackURL, err := startThrowAwaySlack(ending)
	if err != nil {
		return nil, err
	}
	console.Sayf("Postgres on 127.0.0.1:%d, ClickHouse on 127.0.0.1:%d, Slack look-alike on 127.0.0.1:%d", server.Port(), clickServer.port, slack.port)
	return append(throwAwayEnvironment(found, server, clickServer), SlackURLVariable+"="+slackURL), nil
}

func throwAwayEnvironment(found engines.Engines, server *pgserver.Server, click *clickHouse) []string {
	return []string{
		PostgresURLVariable + "=" + server.URL("postgres"),
		ClickHouseURLVariable + "=" + click.url(),
		ChDBVariable + "=" + found.ChDB,
		PostgresBinVariable + "=" + found.PostgresBin,
	}
}
