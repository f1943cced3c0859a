package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
)

// splitCommands returns the commands that follow one another, each after its --.
func splitCommands(args []string) (commands [][]string) {
	for len(args) > 0 && args[0] == "--" {
		end := slices.Index(args[1:], "--") + 1
		if end == 0 {
			end = len(args)
		}
		commands = append(commands, args[1:end])
		args = args[end:]
	}
	return commands
}

// runTests runs commands that print what `go test -json` does, side by side, and reports on them as on one. It returns the
// failed tests that may be tried again, and an error when a command has failed.
func runTests(ctx context.Context, commands [][]string, out io.Writer) (again string, err error) {
	read, write := io.Pipe()
	var mu sync.Mutex
	var running sync.WaitGroup
	errs := make([]error, len(commands))
	for i, command := range commands {
		running.Go(func() {
			errs[i] = runLines(ctx, command, func(line []byte) error {
				mu.Lock()
				defer mu.Unlock()
				_, err := write.Write(line)
				return err
			})
		})
	}
	go func() {
		running.Wait()
		_ = write.Close()
	}()
	again, err = reportTests(read, out)
	_ = read.CloseWithError(errors.New("the report has ended"))
	running.Wait()
	return again, errors.Join(append(errs, err)...)
}

// runLines runs a command and hands on each whole line that it prints.
func runLines(ctx context.Context, command []string, each func(line []byte) error) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // the Makefile's
	cmd.Stderr = os.Stderr
	said, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("run %s: %w", command[0], err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("run %s: %w", command[0], err)
	}
	var failed error
	lines := bufio.NewReader(said)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 && failed == nil {
			failed = each(line)
		}
		if err != nil {
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w", command[0], err)
	}
	return failed
}
