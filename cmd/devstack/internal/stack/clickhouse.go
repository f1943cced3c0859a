//go:build unix

package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tocsin/cmd/devstack/internal/chdb"
	"tocsin/cmd/devstack/internal/filelock"
	"tocsin/cmd/devstack/internal/netport"
	"tocsin/cmd/devstack/internal/proc"
	"tocsin/cmd/devstack/internal/taillog"
)

const (
	startAttempts = 3
	// dyingBound is how long a process of a killed devstack may take to end.
	dyingBound = 30 * time.Second
)

// clickHouse is a running ClickHouse process.
type clickHouse struct {
	*proc.Child
	port int
	// tether is a pipe that the process reads. It ends when devstack does, on every system and in
	// every case.
	tether *os.File
}

// clickHouseOptions says what to run.
type clickHouseOptions struct {
	// Self is devstack's own program, which also runs ClickHouse.
	Self string
	// Library is libchdb; DataDir is where it stores its tables.
	Library, DataDir string
	// Port is the port to use; 0, or at the first start a port in use, means any free one.
	Port int
	// Log gets the output of the process.
	Log io.Writer
}

// Stop ends the process.
func (c *clickHouse) Stop(ctx context.Context) error {
	return errors.Join(
		c.Child.Stop(ctx, proc.Step{Signal: syscall.SIGTERM, Wait: 15 * time.Second}),
		c.tether.Close(),
	)
}

func (c *clickHouse) url() string {
	return fmt.Sprintf("http://default:@127.0.0.1:%d/default", c.port)
}

func superviseClickHouse(ctx context.Context, console *Console, opts clickHouseOptions) (*supervisor, *clickHouse, error) {
	var first *clickHouse
	if err := awaitEngine(ctx, opts.DataDir); err != nil {
		return nil, nil, err
	}
	supervised, err := supervise(ctx, console, "ClickHouse", func(ctx context.Context) (process, error) {
		if first != nil {
			return launchClickHouse(ctx, opts)
		}
		for attempt := 1; ; attempt++ {
			port, err := netport.Free(opts.Port)
			if err != nil {
				return nil, fmt.Errorf("start ClickHouse: %w", err)
			}
			started := opts
			started.Port = port
			if first, err = launchClickHouse(ctx, started); err == nil {
				opts.Port = port
				return first, nil
			}
			if attempt == startAttempts || !strings.Contains(err.Error(), "address already in use") {
				return nil, err
			}
		}
	})
	return supervised, first, err
}

// awaitEngine waits until no process uses a data directory. A process that outlived a killed
// devstack ends by itself, which takes a while on a busy machine. If one remains, the process that
// is started next says so.
func awaitEngine(ctx context.Context, dataDir string) error {
	if err := os.MkdirAll(dataDir, 0o750); err != nil {
		return fmt.Errorf("start ClickHouse: %w", err)
	}
	bounded, cancel := context.WithTimeout(ctx, dyingBound)
	defer cancel()
	lock, err := filelock.Wait(bounded, filepath.Join(dataDir, chdb.LockFile), func(*filelock.HeldError) {})
	switch {
	case err == nil:
		return lock.Release()
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return nil
	default:
		return fmt.Errorf("start ClickHouse: %w", err)
	}
}

func launchClickHouse(ctx context.Context, opts clickHouseOptions) (*clickHouse, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start ClickHouse: %w", err)
	}
	log := taillog.New(opts.Log)
	child, err := proc.Start(proc.Options{
		Path: opts.Self,
		Args: []string{
			"clickhouse", "--library", opts.Library, "--data", opts.DataDir,
			"--listen", "127.0.0.1:" + strconv.Itoa(opts.Port), "--tether",
		},
		Stdin:  read,
		Stdout: log,
		Stderr: log,
	})
	_ = read.Close()
	if err != nil {
		_ = write.Close()
		return nil, fmt.Errorf("start ClickHouse: %w", err)
	}
	started := &clickHouse{Child: child, port: opts.Port, tether: write}
	if err := awaitHTTP(ctx, child, fmt.Sprintf("http://127.0.0.1:%d/ping", opts.Port)); err != nil {
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = started.Stop(stopCtx)
		return nil, fmt.Errorf("start ClickHouse: %w%s", err, log.Suffix())
	}
	return started, nil
}
