package chserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"tocsin/cmd/devstack/internal/chdb"
)

// Options say what to serve.
type Options struct {
	// Library is the path of libchdb.
	Library string
	// DataDir keeps the tables; it is created when missing.
	DataDir string
	// Listen is a loopback address, by default 127.0.0.1:0. There is no password check.
	Listen string
	// Grace is how long running statements may take to end when the server stops, by default 5 s; then they are
	// cancelled.
	Grace time.Duration
	// Logger receives the server's own messages. Statements are not logged.
	Logger *slog.Logger
	// Ready, if set, is called once with the address (host:port) when requests are answered.
	Ready func(addr string)
}

// defaultGrace is the default of Options.Grace.
const defaultGrace = 5 * time.Second

// killGrace is how long cancelled statements may take to end.
const killGrace = 10 * time.Second

// Run serves until the context ends. Then it accepts no new requests, lets running ones end or
// cancels them, and closes the engine. A process can call it once.
func Run(ctx context.Context, opts Options) error {
	if opts.Listen == "" {
		opts.Listen = "127.0.0.1:0"
	}
	if opts.Grace == 0 {
		opts.Grace = defaultGrace
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	listener, err := listen(ctx, opts.Listen)
	if err != nil {
		return err
	}
	library, err := chdb.Open(opts.Library)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	engine, err := library.Start(opts.DataDir)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	id, err := readIdentity(ctx, engine)
	if err != nil {
		return errors.Join(err, engine.Close(), listener.Close())
	}
	opts.Logger.LogAttrs(ctx, slog.LevelInfo, "ClickHouse engine is up",
		slog.String("version", id.version), slog.String("data_dir", opts.DataDir), slog.String("addr", listener.Addr().String()))
	return serve(ctx, opts, listener, engine, id)
}

// listen opens the port. An address that is not on this machine is refused.
func listen(ctx context.Context, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", address, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("listen on %q: only loopback addresses are served, since there is no password check", address)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", address, err)
	}
	return listener, nil
}

// serve answers requests on the listener until the context ends, and closes listener and engine.
func serve(ctx context.Context, opts Options, listener net.Listener, engine *chdb.Engine, id identity) error {
	statements, cancelStatements := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelStatements()
	handler := &front{sessions: newSessions(engine), identity: id, log: opts.Logger, now: time.Now}
	server := &http.Server{
		Handler:           handler.routes(),
		ReadHeaderTimeout: 30 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return statements },
		ErrorLog:          slog.NewLogLogger(opts.Logger.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	if opts.Ready != nil {
		opts.Ready(listener.Addr().String())
	}
	var serveErr error
	select {
	case <-ctx.Done():
	case serveErr = <-failed:
	}

	stopped := handler.running.stop()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), opts.Grace+killGrace)
	defer cancel()
	cancelLate := time.AfterFunc(opts.Grace, cancelStatements)
	defer cancelLate.Stop()
	stopErr := server.Shutdown(stopping)
	select {
	case <-stopped:
	default:
		// The engine cannot be closed under a statement. What was acknowledged is on disk all the same.
		return errors.Join(serveErr, fmt.Errorf("stop ClickHouse: a statement does not end: %w", stopErr))
	}
	closeErr := server.Close()
	handler.sessions.close()
	return errors.Join(serveErr, closeErr, engine.Close())
}

// requestGroup counts the requests under way, and admits no more once it is being stopped.
type requestGroup struct {
	mu      sync.Mutex
	running int
	stopped chan struct{} // set by stop, closed when none is running
}

// enter counts a request, or returns false after stop.
func (g *requestGroup) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped != nil {
		return false
	}
	g.running++
	return true
}

// leave ends the count of a request.
func (g *requestGroup) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	if g.running == 0 && g.stopped != nil {
		close(g.stopped)
	}
}

// stop admits no more requests and returns a channel that closes when none is running. It is called
// once.
func (g *requestGroup) stop() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = make(chan struct{})
	if g.running == 0 {
		close(g.stopped)
	}
	return g.stopped
}
