//go:build unix

package filelock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"tocsin/cmd/devstack/internal/filelock"
)

// holdVariable makes the test program hold a lock until it is killed.
const holdVariable = "FILELOCK_TEST_HOLD"

func TestMain(m *testing.M) {
	if path := os.Getenv(holdVariable); path != "" {
		if _, err := filelock.Try(path); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("held")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestTryNamesTheHolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := filelock.Try(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = filelock.Try(path)
	var held *filelock.HeldError
	if !errors.As(err, &held) || held.PID != os.Getpid() {
		t.Errorf("error %v, want held by %d", err, os.Getpid())
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := filelock.Try(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestLockEndsWithItsHolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	holder := exec.CommandContext(t.Context(), os.Args[0])
	holder.Env = append(os.Environ(), holdVariable+"="+path)
	if _, err := holder.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if said, err := bufio.NewReader(output).ReadString('\n'); said != "held\n" {
		t.Fatalf("holder said %q, %v", said, err)
	}
	waiting := make(chan int, 1)
	taken := make(chan error, 1)
	go func() {
		lock, err := filelock.Wait(context.Background(), path, func(held *filelock.HeldError) { waiting <- held.PID })
		if err == nil {
			err = lock.Release()
		}
		taken <- err
	}()
	if pid := <-waiting; pid != holder.Process.Pid {
		t.Errorf("waits for process %d, want %d", pid, holder.Process.Pid)
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait()
	if err := <-taken; err != nil {
		t.Error(err)
	}
}

// TestReleaseIsNotDelayedByForks locks and unlocks a file while the process starts others, which
// have its open files for a moment.
func TestReleaseIsNotDelayedByForks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	done := make(chan struct{})
	forks := make(chan error, 1)
	go func() {
		for {
			select {
			case <-done:
				forks <- nil
				return
			default:
			}
			if err := exec.CommandContext(t.Context(), "true").Run(); err != nil {
				forks <- err
				return
			}
		}
	}()
	for range 5_000 {
		lock, err := filelock.Try(path)
		if err != nil {
			t.Error(err)
			break
		}
		if err := lock.Release(); err != nil {
			t.Error(err)
			break
		}
	}
	close(done)
	if err := <-forks; err != nil {
		t.Error(err)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := filelock.Try(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Release() }()
	ctx, cancel := context.WithCancel(t.Context())
	_, err = filelock.Wait(ctx, path, func(*filelock.HeldError) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
