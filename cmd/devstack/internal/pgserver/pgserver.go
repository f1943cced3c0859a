//go:build unix

// Package pgserver runs a PostgreSQL server as a child process.
//
// The cluster is made on first use (UTF-8, locale C, UTC). It belongs to devstack's user; for root,
// which Postgres refuses, to the user nobody. It listens only on loopback and trusts every
// connection there, so it is for development and tests.
//
// The data directory is the only state. It is made with one rename, so a crash leaves a complete
// cluster or none. Only one server at a time may run on it. A server that outlived a killed
// devstack is found by its postmaster.pid and stopped before a new one starts. If the process in a
// postmaster.pid is not a Postgres of this directory, it is not stopped.
package pgserver

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

	"github.com/jackc/pgx/v5"

	"tocsin/cmd/devstack/internal/netport"
	"tocsin/cmd/devstack/internal/proc"
	"tocsin/cmd/devstack/internal/taillog"
)

// Superuser is the name of the only role.
const Superuser = "postgres"

const (
	readyInterval  = 50 * time.Millisecond
	connectTimeout = 2 * time.Second
	startAttempts  = 3
)

// Options says what to run.
type Options struct {
	// BinDir holds initdb and postgres.
	BinDir string
	// DataDir is the cluster's directory. It is made if it is missing; the directory above must
	// exist.
	DataDir string
	// Port is the port to use; 0, or a port in use, means any free one.
	Port int
	// MaxConnections is 200 when 0.
	MaxConnections int
	// ThrowAway trades durability for speed: a crash of the machine may lose data.
	ThrowAway bool
	// Settings are added to the server's settings, such as "work_mem=64MB", and override them.
	Settings []string
	// Follow is the server of which this one is a standby, in a directory that Server.Copy made;
	// nil means none.
	Follow *Server
	// Log gets the output of initdb and the server.
	Log io.Writer
}

// Server is a running server that accepts connections.
type Server struct {
	child *proc.Child
	port  int
	dir   string
}

// Start makes the cluster if needed, starts the server and returns when it accepts connections.
func Start(ctx context.Context, opts Options) (*Server, error) {
	if opts.MaxConnections == 0 {
		opts.MaxConnections = 200
	}
	who := currentAccount()
	for _, path := range []string{opts.DataDir, filepath.Join(opts.BinDir, "postgres")} {
		if err := Reachable(path); err != nil {
			return nil, err
		}
	}
	if err := initialise(ctx, opts, who); err != nil {
		return nil, err
	}
	if err := evict(ctx, opts.DataDir); err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		server, err := launch(ctx, opts, who)
		if !errors.Is(err, errRetry) || attempt == startAttempts {
			return server, err
		}
	}
}

// URL is the address of a database of the cluster.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable", Superuser, s.port, database)
}

// Port is the port on 127.0.0.1.
func (s *Server) Port() int {
	return s.port
}

// PID is the postmaster's process id.
func (s *Server) PID() int {
	return s.child.PID()
}

// Done is closed when the server has ended.
func (s *Server) Done() <-chan struct{} {
	return s.child.Done()
}

// Err says how the server ended. It may be called only after Done.
func (s *Server) Err() error {
	return s.child.Err()
}

// Stop ends the server: clients are disconnected and a checkpoint is written. If that takes too
// long, the checkpoint is skipped. If ctx ends, the server is killed.
func (s *Server) Stop(ctx context.Context) error {
	return s.child.Stop(ctx,
		proc.Step{Signal: syscall.SIGINT, Wait: 15 * time.Second},
		proc.Step{Signal: syscall.SIGQUIT, Wait: 5 * time.Second},
	)
}

// CreateDatabase creates a database unless it exists.
func (s *Server) CreateDatabase(ctx context.Context, name string) (err error) {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	var exists bool
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&exists)
	if err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	if exists {
		return nil
	}
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}

// errRetry says that a start failed in a way that the next attempt may not.
var errRetry = errors.New("start Postgres again")

func launch(ctx context.Context, opts Options, who account) (*Server, error) {
	port, err := netport.Free(opts.Port)
	if err != nil {
		return nil, fmt.Errorf("start Postgres: %w", err)
	}
	log := taillog.New(opts.Log)
	child, err := proc.Start(proc.Options{
		Path:       filepath.Join(opts.BinDir, "postgres"),
		Args:       arguments(opts, port),
		Env:        environment(),
		Dir:        "/",
		Stdout:     log,
		Stderr:     log,
		Credential: who.credential,
		// The server ends at once and recovers at its next start; SIGKILL would leave its shared memory behind.
		OrphanSignal: syscall.SIGQUIT,
	})
	if err != nil {
		return nil, explainStart(err, who)
	}
	server := &Server{child: child, port: port, dir: opts.DataDir}
	if err := server.awaitReady(ctx, opts.DataDir); err != nil {
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = server.Stop(stopCtx)
		if strings.Contains(log.Text(), "Address already in use") ||
			strings.Contains(log.Text(), "shared memory block is still in use") {
			return nil, fmt.Errorf("%w: %w: %s", errRetry, err, log.Text())
		}
		return nil, explainEnd("start Postgres", err, log)
	}
	return server, nil
}

func arguments(opts Options, port int) []string {
	settings := []string{
		"listen_addresses=127.0.0.1",
		"port=" + strconv.Itoa(port),
		"unix_socket_directories=",
		"max_connections=" + strconv.Itoa(opts.MaxConnections),
		"timezone=UTC",
		"log_timezone=UTC",
		"logging_collector=off",
	}
	if opts.Follow != nil {
		settings = append(settings, fmt.Sprintf("primary_conninfo=host=127.0.0.1 port=%d user=%s", opts.Follow.port, Superuser))
	}
	if opts.ThrowAway {
		settings = append(settings, "fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_prepared_transactions=8")
	}
	args := []string{"-D", opts.DataDir}
	for _, setting := range append(settings, opts.Settings...) {
		args = append(args, "-c", setting)
	}
	return args
}

// environment is devstack's environment without variables that would affect the server.
func environment() []string {
	var kept []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "PG") && !strings.HasPrefix(name, "LC_") && name != "LANG" && name != "TZ" {
			kept = append(kept, entry)
		}
	}
	return append(kept, "LC_ALL=C", "TZ=UTC")
}

// awaitReady connects until the server answers, and checks that it is this one.
func (s *Server) awaitReady(ctx context.Context, dataDir string) error {
	ticker := time.NewTicker(readyInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.Done():
			return fmt.Errorf("the server ended: %w", errors.Join(s.Err(), errEnded))
		case <-ticker.C:
		}
		if !saysReady(dataDir) {
			continue
		}
		if served, err := s.servedDir(ctx); err == nil {
			if filepath.Clean(served) != filepath.Clean(dataDir) {
				return fmt.Errorf("port %d belongs to another Postgres, with data in %s", s.port, served)
			}
			return nil
		}
	}
}

// saysReady reports whether the server says in its data directory that it accepts connections, as a
// standby or not. An earlier connection is refused, and logged as fatal. If the file cannot be
// read, the caller has to try.
func saysReady(dataDir string) bool {
	const statusLine = 7
	content, err := os.ReadFile(filepath.Join(dataDir, "postmaster.pid"))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	lines := strings.Split(string(content), "\n")
	if len(lines) <= statusLine {
		return false
	}
	said := strings.TrimSpace(lines[statusLine])
	return said == "ready" || said == "standby"
}

var errEnded = errors.New("before it was ready")

func (s *Server) servedDir(ctx context.Context) (dir string, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	err = conn.QueryRow(ctx, "SHOW data_directory").Scan(&dir)
	return dir, err
}

func explainStart(err error, who account) error {
	if who.credential != nil && (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EINVAL)) {
		return fmt.Errorf("start Postgres: it refuses root, and this root may not start it as user %d (%w): "+
			"run devstack as an ordinary user", who.uid, err)
	}
	return fmt.Errorf("start Postgres: %w", err)
}

// explainEnd says why initdb or the server ended early.
func explainEnd(what string, err error, log *taillog.Writer) error {
	switch said := log.Text(); {
	case strings.Contains(said, "No space left on device"):
		return fmt.Errorf("%s: disk full: free some space and start again", what)
	case strings.Contains(said, "could not look up effective user ID"):
		return fmt.Errorf("%s: this system has no name for user %d, and Postgres wants one: "+
			"add the user to /etc/passwd, or run devstack as another one", what, currentAccount().uid)
	}
	return fmt.Errorf("%s: %w%s", what, err, log.Suffix())
}
