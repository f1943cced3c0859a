//go:build unix

package torture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"tocsin/cmd/devstack/internal/pgserver"
)

const database = "tocsin"

// postgres is a server that is stopped, crashed and started again. What it has committed survives
// that: it is written to the operating system before it is confirmed, and the system stays up. With
// a standby it is a pair of servers whose roles change.
type postgres struct {
	binDir, dir string
	settings    []string
	log         *os.File
	synchronous bool

	// busy is locked while servers are stopped and started.
	busy sync.Mutex

	mu sync.Mutex
	// nodes are the servers, one or two, and primary is the index of the one that accepts writes.
	nodes   []*node
	primary int
	// copies counts the base backups: each has a directory of its own.
	copies int
}

// node is a server with a fixed port.
type node struct {
	options pgserver.Options
	server  *pgserver.Server
}

func startPostgres(ctx context.Context, o *Options) (*postgres, error) {
	log, err := os.Create(filepath.Join(o.Dir, "postgres.log"))
	if err != nil {
		return nil, err
	}
	p := &postgres{
		binDir: o.PostgresBin, dir: o.Dir, log: log, synchronous: o.Form == SynchronousStandby,
		settings: []string{"fsync=off", "full_page_writes=off", "track_commit_timestamp=on"},
	}
	if o.Form.hasStandby() {
		p.settings = append(p.settings, "wal_keep_size=2GB", "wal_retrieve_retry_interval=100ms", "wal_receiver_status_interval=1s")
	}
	if o.Form == FullDisk {
		// The write-ahead log must fit on the disk, with much room for the data.
		p.dir = filepath.Join(o.Dir, diskDir)
		p.settings = append(p.settings, "max_wal_size=96MB", "min_wal_size=32MB")
	}
	first := &node{options: p.options("postgres")}
	if first.server, err = pgserver.Start(ctx, first.options); err != nil {
		return nil, err
	}
	first.options.Port = first.server.Port()
	p.nodes = []*node{first}
	if err := first.server.CreateDatabase(ctx, database); err != nil {
		return p, err
	}
	if !o.Form.hasStandby() {
		return p, nil
	}
	p.nodes = append(p.nodes, &node{})
	return p, p.follow(ctx)
}

func (p *postgres) options(name string) pgserver.Options {
	return pgserver.Options{
		BinDir: p.binDir, DataDir: filepath.Join(p.dir, name), MaxConnections: 100, Log: p.log, Settings: p.settings,
	}
}

func (p *postgres) leading() *node {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nodes[p.primary]
}

// addresses returns the addresses of all nodes.
func (p *postgres) addresses() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for _, n := range p.nodes {
		all = append(all, net.JoinHostPort("127.0.0.1", strconv.Itoa(n.options.Port)))
	}
	return all
}

// restart stops the server, orderly or at once, and starts it again after a while.
func (p *postgres) restart(ctx context.Context, crash bool, down time.Duration) error {
	p.busy.Lock()
	defer p.busy.Unlock()
	n := p.leading()
	if crash {
		if err := syscall.Kill(n.server.PID(), syscall.SIGQUIT); err != nil {
			return fmt.Errorf("crash Postgres: %w", err)
		}
		<-n.server.Done()
	} else if err := n.server.Stop(ctx); err != nil {
		return err
	}
	pause(ctx.Done(), down)
	return p.start(ctx, n)
}

// start starts a node whose server has ended.
func (p *postgres) start(ctx context.Context, n *node) error {
	server, err := pgserver.Start(ctx, n.options)
	if err != nil {
		return fmt.Errorf("start Postgres again: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n.server = server
	return nil
}

func (p *postgres) stop(ctx context.Context) error {
	p.busy.Lock()
	defer p.busy.Unlock()
	var errs []error
	for _, n := range p.nodes {
		if n.server != nil {
			errs = append(errs, n.server.Stop(ctx))
		}
	}
	return errors.Join(errs...)
}

// query runs f on a new connection to the primary. It fails if the server restarts.
func (p *postgres) query(ctx context.Context, f func(*pgx.Conn) error) error {
	return queryServer(ctx, p.leading().options.Port, f)
}

func queryServer(ctx context.Context, port int, f func(*pgx.Conn) error) (err error) {
	conn, err := pgx.Connect(ctx, fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable&connect_timeout=2", pgserver.Superuser, port, database))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	return f(conn)
}

// recover waits until the server answers, and starts it if it has ended.
func (p *postgres) recover(ctx context.Context) (ended bool, err error) {
	for {
		n := p.leading()
		select {
		case <-n.server.Done():
			return true, p.start(ctx, n)
		default:
		}
		err := p.query(ctx, func(conn *pgx.Conn) error {
			// It accepts writes again.
			_, err := conn.Exec(ctx, `CREATE TEMPORARY TABLE writes ON COMMIT DROP AS SELECT txid_current()`)
			return err
		})
		if err == nil {
			return false, nil
		}
		if !pause(ctx.Done(), 50*time.Millisecond) {
			return false, errors.Join(ctx.Err(), err)
		}
	}
}

// noRoom returns how often a server reported a full disk.
func (p *postgres) noRoom() (int, error) {
	said, err := os.ReadFile(p.log.Name())
	return bytes.Count(said, []byte("No space left on device")), err
}
