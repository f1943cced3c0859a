package product

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/bench/child"
)

// Replica is a running tocsin serve.
type Replica struct {
	*child.Process
	// Address is that of its API, "" where it has not that role.
	Address string
}

// Start starts tocsin serve with settings as NAME=VALUE beside the usual ones,
// and waits until it runs. Where a run would not end otherwise, it is quick to
// notice what is due: those settings are below.
func (w *World) Start(ctx context.Context, settings ...string) (*Replica, error) {
	env := append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.Getenv("TMPDIR"),
		"TOCSIN_POSTGRES_URL=" + w.postgresURL, "TOCSIN_CLICKHOUSE_URL=" + w.clickHouseURL(w.clickHouseDatabase),
		"TOCSIN_ENCRYPTION_KEY=" + key, "TOCSIN_OUTGOING_ALLOW=127.0.0.0/8", "TOCSIN_ACCESS=open",
		"SSL_CERT_FILE=" + w.Authority, "TOCSIN_LISTEN=127.0.0.1:0", "TOCSIN_SETTLE=0s", "TOCSIN_LOG_LEVEL=info",
		// What is done beside the work stays out of the minutes that are measured.
		"TOCSIN_RECONCILE_INTERVAL=24h", "TOCSIN_RETENTION_INTERVAL=24h",
	}, settings...)
	running := &running{found: make(chan string, 1)}
	p, err := child.Start(child.Options{Path: w.Program, Args: []string{"serve"}, Env: env, Stderr: running})
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(30 * time.Second)
	defer timer.Stop()
	select {
	case address := <-running.found:
		return &Replica{Process: p, Address: address}, nil
	case <-p.Ended():
		return nil, fmt.Errorf("tocsin ended: %s", p.Said())
	case <-timer.C:
	case <-ctx.Done():
	}
	p.Kill()
	return nil, fmt.Errorf("tocsin did not start: %s", p.Said())
}

// End ends the replica in order.
func (r *Replica) End() error { return r.Stop(40 * time.Second) }

// EnableHook enables a webhook over the API, as a person does.
func (r *Replica) EnableHook(ctx context.Context, id uuid.UUID) error {
	if err := r.call(ctx, http.MethodPost, "/webhooks/"+id.String()+"/enable"); err != nil {
		return fmt.Errorf("enable webhook: %w", err)
	}
	return nil
}

// ListInbox asks for the first page of the inbox.
func (r *Replica) ListInbox(ctx context.Context) error {
	if err := r.call(ctx, http.MethodGet, "/alerts?limit=50&state=FIRING"); err != nil {
		return fmt.Errorf("list the inbox: %w", err)
	}
	return nil
}

// Passes is how many passes over partitions with rules a replica has made, and how long
// they took together.
type Passes struct {
	Count int
	Took  time.Duration
}

// Since returns what was done between an earlier reading and this one.
func (p Passes) Since(earlier Passes) Passes {
	return Passes{p.Count - earlier.Count, p.Took - earlier.Took}
}

// Passes asks the replica, which must have the role api.
func (r *Replica) Passes(ctx context.Context) (p Passes, err error) {
	text, err := r.get(ctx, http.MethodGet, "/metrics")
	if err != nil {
		return p, fmt.Errorf("read metrics: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		var into func(float64)
		switch {
		case strings.HasPrefix(name, "tocsin_pass_duration_seconds_sum{"):
			into = func(v float64) { p.Took += time.Duration(v * float64(time.Second)) }
		case strings.HasPrefix(name, "tocsin_pass_duration_seconds_count{"):
			into = func(v float64) { p.Count += int(v) }
		default:
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return p, fmt.Errorf("read metrics: %w", err)
		}
		into(v)
	}
	return p, nil
}

// AwaitPasses waits until the replica has made so many passes.
func (r *Replica) AwaitPasses(ctx context.Context, count int) (p Passes, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, err = awaitEvery(ctx, 20*time.Millisecond, func() (bool, error) {
		p, err = r.Passes(ctx)
		return p.Count >= count, err
	})
	return p, err
}

func (r *Replica) call(ctx context.Context, method, path string) error {
	_, err := r.get(ctx, method, "/api/v1"+path)
	return err
}

func (r *Replica) get(ctx context.Context, method, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+r.Address+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	got, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	said, err := io.ReadAll(got.Body)
	err = errors.Join(err, got.Body.Close())
	if err == nil && got.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.300s", got.Status, said)
	}
	return said, err
}

// running finds in a log that the replica runs, and where.
type running struct {
	mu    sync.Mutex
	text  []byte
	found chan string
	done  bool
}

func (r *running) Write(text []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done {
		return len(text), nil
	}
	r.text = append(r.text, text...)
	pattern := regexp.MustCompile(`msg=running .*address=(\S*).*\n`)
	if match := pattern.FindSubmatch(r.text); match != nil {
		address := string(match[1])
		if address == `""` {
			address = ""
		}
		r.found <- address
		r.done, r.text = true, nil
	}
	return len(text), nil
}
