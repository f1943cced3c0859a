//go:build unix

package torture

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"tocsin/cmd/devstack/internal/netport"
	"tocsin/cmd/devstack/internal/proc"
)

// Short settings, so that what takes a minute in production takes seconds here. A lease is long enough to be renewed on a
// machine that is several times as slow as usual, and shorter than a call may take.
const (
	replicas       = 3
	claimFor       = 4 * time.Second
	lease          = 4 * time.Second
	webhookTimeout = 5 * time.Second
	// encryptionKey is base64 of 32 zero bytes.
	encryptionKey = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
)

// replica is tocsin serve behind its own proxies, started again whenever it ends.
type replica struct {
	number  int
	program string
	env     []string
	log     *os.File

	postgres, clickHouse proxies

	// one fault at a time
	busy sync.Mutex

	mu    sync.Mutex
	child *proc.Child
	port  int
	// held is closed when the replica may start again; nil if it may.
	held chan struct{}
	pids map[int]bool
}

func newReplica(o *Options, number int, program, dir string, w *world) (*replica, error) {
	log, err := os.Create(filepath.Join(dir, fmt.Sprintf("replica-%d.log", number)))
	if err != nil {
		return nil, err
	}
	r := &replica{number: number, program: program, log: log, pids: map[int]bool{}}
	ways := w.postgres.addresses()
	if w.pooler != nil {
		ways = append([]string{w.pooler.address()}, ways...)
	}
	if r.postgres, err = newProxies(ways...); err != nil {
		return r, err
	}
	if r.clickHouse, err = newProxies(w.source.address()); err != nil {
		return r, err
	}
	r.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.Getenv("TMPDIR"),
		"TOCSIN_CLICKHOUSE_URL=http://default:@" + r.clickHouse.hosts() + "/default",
		"TOCSIN_ENCRYPTION_KEY=" + encryptionKey, "TOCSIN_OUTGOING_ALLOW=127.0.0.0/8", "TOCSIN_ACCESS=open",
		"TOCSIN_TICK_INTERVAL=200ms", "TOCSIN_SETTLE=200ms", "TOCSIN_POLL_INTERVAL=200ms", "TOCSIN_RESOLVE_INTERVAL=500ms", "TOCSIN_PAGE_SIZE=" + pageSize(o),
		"TOCSIN_PARTITION_LEASE=" + claimFor.String(), "TOCSIN_LEASE=" + lease.String(),
		// More than any series of misdeeds of the receiver, and so long that no message waits
		// longer behind a webhook that is held repeatedly: none is given up.
		"TOCSIN_RETRY_SCHEDULE=300ms,500ms," + strings.Repeat("1s,", 30) + "1h",
		"TOCSIN_BREAKER_PAUSE=200ms", "TOCSIN_BREAKER_MAX_PAUSE=1s",
	}
	if o.Form == Receivers {
		r.env = append(r.env, "TOCSIN_RECEIVERS="+filepath.Join(dir, receiverFolder))
	}
	r.env = append(r.env, r.postgresSettings(o.Form)...)
	if number == jumping {
		r.env = append(r.env, clockVariable+"=1500ms:0s,1h,-2h,10s,-45s,26h")
	}
	return r, nil
}

// postgresSettings connect to Postgres as the documentation recommends for what is in front of it.
func (r *replica) postgresSettings(f Form) []string {
	switch {
	case f.hasStandby():
		return []string{"TOCSIN_POSTGRES_URL=" + postgresURL(r.postgres.hosts()) + "&target_session_attrs=read-write&connect_timeout=2"}
	case f == Pooler:
		return []string{
			"TOCSIN_POSTGRES_URL=" + postgresURL(r.postgres[:1].hosts()) + "&default_query_exec_mode=cache_describe",
			"TOCSIN_BUS_URL=" + postgresURL(r.postgres[1:].hosts()),
		}
	default:
		return []string{"TOCSIN_POSTGRES_URL=" + postgresURL(r.postgres.hosts())}
	}
}

func postgresURL(hosts string) string {
	return "postgres://postgres@" + hosts + "/" + database + "?sslmode=disable"
}

// pageSize splits what a tick usually finds into several pages.
func pageSize(o *Options) string {
	return fmt.Sprint(min(max(50, o.Exchanges/100), 1000))
}

// keep starts the replica again whenever it ends, until ctx ends, and then stops it.
func (r *replica) keep(ctx context.Context) {
	for ctx.Err() == nil {
		r.mu.Lock()
		held := r.held
		r.mu.Unlock()
		if held != nil {
			select {
			case <-held:
			case <-ctx.Done():
			}
			continue
		}
		child, err := r.start()
		if err == nil {
			select {
			case <-child.Done():
			case <-ctx.Done():
				_ = child.Stop(context.WithoutCancel(ctx), proc.Step{Signal: syscall.SIGTERM, Wait: 20 * time.Second})
			}
		}
		pause(ctx.Done(), 200*time.Millisecond)
	}
}

func (r *replica) start() (*proc.Child, error) {
	port, err := netport.Free(0)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	env := append(slices.Clip(r.env), fmt.Sprintf("TOCSIN_LISTEN=127.0.0.1:%d", port))
	child, err := proc.Start(proc.Options{Path: r.program, Args: []string{"serve"}, Env: env, Stdout: r.log, Stderr: r.log})
	if err != nil {
		return nil, err
	}
	r.child, r.port = child, port
	r.pids[child.PID()] = true
	return child, nil
}

func (r *replica) url() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("http://127.0.0.1:%d/api/v1", r.port)
}

// signal sends a signal to the running process, if there is one.
func (r *replica) signal(s syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.child != nil {
		_ = r.child.Signal(s)
	}
}

// hold prevents the replica from starting again until release.
func (r *replica) hold() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held == nil {
		r.held = make(chan struct{})
	}
}

func (r *replica) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held != nil {
		close(r.held)
		r.held = nil
	}
}

// ran reports whether a process of this replica had the id.
func (r *replica) ran(pid int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pids[pid]
}

// pidOf returns the process id in a replica's generated name; 0 if there is none.
func pidOf(name string) int {
	parts := strings.Split(name, "-")
	if len(parts) < 3 {
		return 0
	}
	pid, err := strconv.Atoi(parts[len(parts)-2])
	if err != nil {
		return 0
	}
	return pid
}
