//go:build unix

package torture

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"tocsin/cmd/devstack/internal/netport"
	"tocsin/cmd/devstack/internal/pgserver"
	"tocsin/cmd/devstack/internal/proc"
	"tocsin/cmd/devstack/internal/taillog"
)

const poolerProgram = "pgbouncer"

// pooler is a PgBouncer in transaction mode.
type pooler struct {
	program, settings string
	port              int
	log               *taillog.Writer

	mu    sync.Mutex
	child *proc.Child
}

func startPooler(ctx context.Context, o *Options, upstream string) (*pooler, error) {
	program, err := exec.LookPath(poolerProgram)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(upstream)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(o.Dir, "pgbouncer.log"))
	if err != nil {
		return nil, err
	}
	p := &pooler{program: program, settings: filepath.Join(o.Dir, "pgbouncer.ini"), log: taillog.New(log)}
	if p.port, err = netport.Free(0); err != nil {
		return nil, err
	}
	// A server that is down is tried again soon: the default is 15 s.
	settings := fmt.Sprintf(`[databases]
* = host=%s port=%s user=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 20
max_client_conn = 400
server_login_retry = 1
query_wait_timeout = 10
`, host, port, pgserver.Superuser, p.port)
	if err := os.WriteFile(p.settings, []byte(settings), 0o644); err != nil { //nolint:gosec // another user reads it
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p, p.launch(ctx)
}

func (p *pooler) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)) }

func (p *pooler) launch(ctx context.Context) error {
	child, err := proc.Start(proc.Options{
		Path: p.program, Args: []string{p.settings}, Dir: "/", Stdout: p.log, Stderr: p.log, Credential: pgserver.Credential(),
	})
	if err != nil {
		return err
	}
	p.child = child
	for pause(ctx.Done(), 20*time.Millisecond) {
		select {
		case <-child.Done():
			return fmt.Errorf("PgBouncer ended before it was ready%s", p.log.Suffix())
		default:
		}
		if conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", p.address()); err == nil {
			return conn.Close()
		}
	}
	return ctx.Err()
}

// crash kills it and starts it again after a while.
func (p *pooler) crash(ctx context.Context, down time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.child.Stop(ctx); err != nil {
		return err
	}
	pause(ctx.Done(), down)
	return p.launch(ctx)
}

func (p *pooler) stop(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.child == nil {
		return errors.New("PgBouncer was never started")
	}
	return p.child.Stop(ctx, proc.Step{Signal: syscall.SIGINT, Wait: 5 * time.Second})
}
