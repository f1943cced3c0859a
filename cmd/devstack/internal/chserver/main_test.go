package chserver_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tocsin/cmd/devstack/internal/chserver"
)

// libraryEnv names the variable with the path of libchdb.so; `devstack run` exports it.
const libraryEnv = "TOCSIN_DEVSTACK_CHDB"

// childEnv turns the test binary into the server process: its value is the data directory.
const childEnv = "CHSERVER_TEST_DATA_DIR"

// TestMain is also the main function of the server processes that the tests start and kill.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		os.Exit(runChild(dir))
	}
	os.Exit(m.Run())
}

// runChild serves until SIGTERM, or until standard input ends because the test process is gone.
func runChild(dir string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // ends when the parent does
		cancel()
	}()
	err := chserver.Run(ctx, chserver.Options{
		Library: os.Getenv(libraryEnv),
		DataDir: dir,
		Grace:   200 * time.Millisecond,
		Logger:  slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Ready:   func(addr string) { fmt.Println(addr) },
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// server is a server process.
type server struct {
	addr string
	cmd  *exec.Cmd
	wait func() error
}

// startServer starts a server process on the data directory and waits until it answers. It is
// killed at the end of the test.
func startServer(t *testing.T, dir string) *server {
	t.Helper()
	if os.Getenv(libraryEnv) == "" {
		t.Fatalf("%s is not set: run the tests with `make test`, which installs the engines and sets it", libraryEnv)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0]) // Cleanup ends it
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	cmd.Stderr = t.Output()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &server{cmd: cmd, wait: sync.OnceValue(cmd.Wait)}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = s.wait()
		_ = stdin.Close()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the server did not start: %v", s.wait())
	}
	s.addr = strings.TrimSpace(line)
	return s
}

// kill ends the process as a crash would.
func (s *server) kill(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.wait() // "signal: killed"
}

// stop stops the process as its parent would, and returns how it exited.
func (s *server) stop(t *testing.T) error {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	return s.wait()
}

// dataDir returns a new data directory.
func dataDir(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "clickhouse")
}
