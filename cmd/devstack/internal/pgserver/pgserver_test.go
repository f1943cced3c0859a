//go:build unix

package pgserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tocsin/cmd/devstack/internal/proc"
)

func testOptions(t *testing.T) Options {
	t.Helper()
	bin := os.Getenv("TOCSIN_DEVSTACK_POSTGRES_BIN")
	if bin == "" {
		t.Fatal("TOCSIN_DEVSTACK_POSTGRES_BIN is not set: run the tests as devstack run -- go test ./cmd/devstack/...")
	}
	dir, err := Folder()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return Options{BinDir: bin, DataDir: filepath.Join(dir, "postgres"), ThrowAway: true}
}

func start(t *testing.T, opts Options) *Server {
	t.Helper()
	server, err := Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return server
}

func query(t *testing.T, server *Server, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var answer string
	if err := conn.QueryRow(t.Context(), sql).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return answer
}

func TestSettings(t *testing.T) {
	t.Parallel()
	opts := testOptions(t)
	opts.Settings = []string{"work_mem=77MB"}
	server := start(t, opts)
	for setting, want := range map[string]string{
		"server_encoding":           "UTF8",
		"lc_collate":                "C",
		"timezone":                  "UTC",
		"log_timezone":              "UTC",
		"max_connections":           "200",
		"fsync":                     "off",
		"synchronous_commit":        "off",
		"max_prepared_transactions": "8",
		"listen_addresses":          "127.0.0.1",
		"unix_socket_directories":   "",
		"work_mem":                  "77MB",
	} {
		sql := fmt.Sprintf("SELECT current_setting('%s')", setting)
		if setting == "lc_collate" {
			sql = "SELECT datcollate::text FROM pg_database WHERE datname = current_database()"
		}
		if got := query(t, server, sql); got != want {
			t.Errorf("%s is %q, want %q", setting, got, want)
		}
	}
	for range 2 {
		if err := server.CreateDatabase(t.Context(), "of mine"); err != nil {
			t.Fatal(err)
		}
	}
	if got := query(t, server, "SELECT count(*)::text FROM pg_database WHERE datname = 'of mine'"); got != "1" {
		t.Errorf("%s databases were made", got)
	}
}

// TestCrash kills the server as the kernel does when memory runs out, and checks that a durable one
// loses nothing.
func TestCrash(t *testing.T) {
	t.Parallel()
	opts := testOptions(t)
	opts.ThrowAway = false
	server := start(t, opts)
	if got := query(t, server, "SELECT current_setting('fsync') || current_setting('synchronous_commit')"); got != "onon" {
		t.Errorf("fsync and synchronous_commit are %s", got)
	}
	exec(t, server, "CREATE TABLE kept AS SELECT 42 AS answer")
	if err := syscall.Kill(server.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-server.Done()

	opts.Port = server.Port()
	again := start(t, opts)
	if again.Port() != server.Port() {
		t.Errorf("port %d became %d", server.Port(), again.Port())
	}
	if got := query(t, again, "SELECT answer::text FROM kept"); got != "42" {
		t.Errorf("answer %s", got)
	}
}

func exec(t *testing.T, server *Server, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// TestSurvivor starts a second server on a directory that already has a running one, as after a
// killed devstack on a system whose kernel does not end child processes.
func TestSurvivor(t *testing.T) {
	t.Parallel()
	opts := testOptions(t)
	survivor := start(t, opts)
	exec(t, survivor, "CREATE TABLE kept AS SELECT 42 AS answer")
	server := start(t, opts)
	select {
	case <-survivor.Done():
	case <-time.After(3 * time.Minute):
		t.Fatal("the survivor still runs")
	}
	if got := query(t, server, "SELECT answer::text FROM kept"); got != "42" {
		t.Errorf("answer %s", got)
	}
}

// TestStalePID lets the id in postmaster.pid belong to another program of Postgres's user, as
// happens after a reboot.
func TestStalePID(t *testing.T) {
	t.Parallel()
	opts := testOptions(t)
	server := start(t, opts)
	path := filepath.Join(opts.DataDir, "postmaster.pid")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}

	stranger, err := proc.Start(proc.Options{
		Path: "/bin/sleep", Args: []string{"1000"}, Credential: currentAccount().credential, Dir: "/",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stranger.Stop(context.Background()) })
	_, rest, _ := strings.Cut(string(content), "\n")
	who := currentAccount()
	if err := os.WriteFile(path, fmt.Appendf(nil, "%d\n%s", stranger.PID(), rest), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, who.uid, who.gid); err != nil {
		t.Fatal(err)
	}

	start(t, opts)
	select {
	case <-stranger.Done():
		t.Error("the stranger was killed")
	default:
	}
}

func TestTakenPort(t *testing.T) {
	t.Parallel()
	opts := testOptions(t)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	opts.Port = listener.Addr().(*net.TCPAddr).Port
	if server := start(t, opts); server.Port() == opts.Port {
		t.Errorf("Postgres listens on %d, which is taken", opts.Port)
	}
}

func TestUnfinishedClusterIsRecreated(t *testing.T) {
	t.Parallel()
	opts := testOptions(t)
	draft := opts.DataDir + ".new"
	if err := os.MkdirAll(filepath.Join(draft, "base"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(draft, "PG_VERSION"), []byte("18\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, opts)
	if _, err := os.Stat(draft); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the draft is still there: %v", err)
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, testOptions(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestErrorShowsWhatPostgresSaid(t *testing.T) {
	t.Parallel()
	opts := testOptions(t)
	opts.Settings = []string{"no_such_setting=1"}
	_, err := Start(t.Context(), opts)
	if err == nil || !strings.Contains(err.Error(), `unrecognized configuration parameter "no_such_setting"`) {
		t.Errorf("error %v", err)
	}
}

func TestReachable(t *testing.T) {
	t.Parallel()
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	err := Reachable(filepath.Join(closed, "deep", "below"))
	if os.Geteuid() != 0 {
		if err != nil {
			t.Errorf("an ordinary user's Postgres runs as that user: %v", err)
		}
		return
	}
	var blocked *UnreachableError
	if !errors.As(err, &blocked) {
		t.Fatalf("error %v", err)
	}
	if blocked.UID != currentAccount().uid || blocked.Blocked == "" {
		t.Errorf("error %+v", blocked)
	}
	if err := Reachable("/usr/local/deep/below"); err != nil {
		t.Errorf("a place that all may enter: %v", err)
	}
}

// TestReadyIsWhatTheServerSays checks how its status file is interpreted against what a server
// writes there when it starts, is up, and stops.
func TestReadyIsWhatTheServerSays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if saysReady(dir) {
		t.Error("without a file the server is said to be ready")
	}
	for status, want := range map[string]bool{"": false, "starting": false, "ready   ": true, "stopping": false} {
		content := "4711\n" + dir + "\n1795361760\n27207\n\n127.0.0.1\n  1 2\n" + status + "\n"
		if err := os.WriteFile(filepath.Join(dir, "postmaster.pid"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := saysReady(dir); got != want {
			t.Errorf("status %q: ready is %v, want %v", status, got, want)
		}
	}
	server := start(t, testOptions(t))
	if running := query(t, server, "show data_directory"); !saysReady(running) {
		t.Error("a server that answers is said not to be ready")
	}
}
