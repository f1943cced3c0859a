package app_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tocsin/internal/app"
	"tocsin/internal/postgres"
)

// crowd repeatedly requests one path, over persistent connections.
type crowd struct {
	// pause is between the requests of each of its members.
	pause    time.Duration
	answered atomic.Int64
	// leaves ends it; gone contains the errors with which its members ended.
	leaves atomic.Bool
	mu     sync.Mutex
	gone   []error
	all    sync.WaitGroup
}

func (c *crowd) ask(url string) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for !c.leaves.Load() {
		// A request that the transport itself must not repeat.
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, strings.NewReader("{}"))
		if err != nil {
			panic(err)
		}
		req.Header.Set("Content-Type", "application/json")
		answer, err := client.Do(req)
		if err == nil {
			_, err = io.Copy(io.Discard, answer.Body)
			err = errors.Join(err, answer.Body.Close())
		}
		if err != nil {
			c.mu.Lock()
			c.gone = append(c.gone, err)
			c.mu.Unlock()
			return
		}
		c.answered.Add(1)
		<-time.After(c.pause)
	}
}

// probe requests /readyz and /healthz over connections of their own.
func probe(base string) (ready int, said string, alive int) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(path string) (int, string) {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, base+path, http.NoBody)
		if err != nil {
			return 0, err.Error()
		}
		answer, err := client.Do(req)
		if err != nil {
			return 0, err.Error()
		}
		defer answer.Body.Close() //nolint:errcheck // read to its end below
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			return 0, err.Error()
		}
		return answer.StatusCode, strings.TrimSpace(string(text))
	}
	ready, said = get("/readyz")
	alive, _ = get("/healthz")
	return ready, said, alive
}

// TestAnEndDropsNoRequest stops the real server while clients make requests continuously and a call
// waits for a webhook. Every accepted request is answered: the server has logged as many requests
// as were answered.
func TestAnEndDropsNoRequest(t *testing.T) {
	t.Parallel()
	// A busy machine takes a while until the last client has left.
	for _, delay := range []time.Duration{0, 5 * time.Second} {
		t.Run(delay.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			hook := w.webhook("slow")
			called, release := w.receiver.hang()
			defer release()
			p := w.serve("TOCSIN_ROLES=api", "TOCSIN_SHUTDOWN_DELAY="+delay.String(), "TOCSIN_LOG_LEVEL=debug")
			base := "http://" + p.address

			const path = "/api/v1/templates/preview"
			// Without pauses, the clients would be what keeps the machine busy during the delay.
			busy, kept := &crowd{pause: delay / 100}, &crowd{pause: delay / 100}
			for range 8 {
				busy.all.Go(func() { busy.ask(base + path) })
				kept.all.Go(func() { kept.ask(base + path) })
			}
			slow := make(chan int, 1)
			go func() {
				status, _ := call(t, http.MethodPost, base+"/api/v1/webhooks/"+hook.String()+"/test", map[string]any{})
				slow <- status
			}()
			await(t, "a call is under way", called)
			w.until("everybody is served", func() bool { return busy.answered.Load() > 100 && kept.answered.Load() > 100 })

			if err := p.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if delay > 0 {
				// As a load balancer does: after the 503 it sends no more requests here.
				w.until("readyz says so", func() bool {
					status, said, alive := probe(base)
					return status == http.StatusServiceUnavailable && strings.Contains(said, `"stopping"`) && alive == http.StatusOK
				})
				kept.leaves.Store(true)
				kept.all.Wait()
				if len(kept.gone) > 0 {
					t.Errorf("clients that leave in time are refused: %v", kept.gone)
				}
			}
			busy.all.Wait()
			kept.all.Wait()
			for _, err := range append(busy.gone, kept.gone...) {
				if opErr, ok := errors.AsType[*net.OpError](err); !ok && !errors.Is(err, io.EOF) {
					t.Errorf("an answer was cut: %v", err)
				} else if ok && opErr.Timeout() {
					t.Errorf("a request hangs: %v", err)
				}
			}
			if _, err := net.Dial("tcp", p.address); !errors.Is(err, syscall.ECONNREFUSED) { //nolint:noctx // it is refused at once
				t.Errorf("a new connection: %v", err)
			}
			release()
			if status := await(t, "the slow call has ended", slow); status != http.StatusOK {
				t.Errorf("the call under way: %d", status)
			}
			<-p.over
			if err := p.Wait(); err != nil {
				t.Errorf("exit: %v", err)
			}
			logged := int64(strings.Count(p.logged.String(), "path="+path+" "))
			if answered := busy.answered.Load() + kept.answered.Load(); logged != answered {
				t.Errorf("%d requests were taken on, %d answered", logged, answered)
			}
		})
	}
}

// valve is a proxy in front of a database that can be closed.
type valve struct {
	listener net.Listener
	target   string
	mu       sync.Mutex
	shut     bool
	open     map[net.Conn]bool
}

// newValve returns a valve and the URL of the database behind it.
func newValve(tb testing.TB, dsn string) (v *valve, through string) {
	tb.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	var config net.ListenConfig
	listener, err := config.Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	v = &valve{listener: listener, target: u.Host, open: map[net.Conn]bool{}}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { v.pass(conn) })
		}
	})
	tb.Cleanup(func() {
		_ = listener.Close()
		v.set(true)
		running.Wait()
	})
	u.Host = listener.Addr().String()
	return v, u.String()
}

func (v *valve) pass(conn net.Conn) {
	var dialer net.Dialer
	server, err := dialer.DialContext(context.Background(), "tcp", v.target)
	if err != nil || !v.keep(conn, server) {
		_ = conn.Close()
		if server != nil {
			_ = server.Close()
		}
		return
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{conn, server}, {server, conn}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_, _ = conn.Close(), server.Close()
		})
	}
	both.Wait()
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.open, conn)
	delete(v.open, server)
}

func (v *valve) keep(conns ...net.Conn) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, c := range conns {
		if !v.shut {
			v.open[c] = true
		}
	}
	return !v.shut
}

// set closes the valve, which cuts every connection, or opens it.
func (v *valve) set(shut bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shut = shut
	for c := range v.open {
		if shut {
			_ = c.Close()
		}
	}
}

// TestReadyzNamesWhatIsDown disconnects the real databases, one after the other.
func TestReadyzNamesWhatIsDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pg, pgURL := newValve(t, w.pgURL)
	ch, chURL := newValve(t, w.ch.URL)
	base, _ := w.replica(func(o *app.Options) {
		o.Roles, o.PostgresURL, o.ClickHouseURL = []app.Role{app.RoleAPI}, pgURL, chURL
	})
	const noClickHouse, noPostgres = `"clickhouse":"Cannot be reached; the log shows the reason"`, `"postgres":"Cannot be reached; the log shows the reason"`
	for _, step := range []struct {
		postgres, clickhouse bool
		status               int
		said                 string
	}{
		{false, false, http.StatusOK, `{"status":"ready","missing":[]}`},
		{false, true, http.StatusOK, `{"status":"ready","missing":["clickhouse"],"reasons":{` + noClickHouse + `}}`},
		{true, true, http.StatusServiceUnavailable, `{"status":"not ready","missing":["postgres","clickhouse"],"reasons":{` + noClickHouse + `,` + noPostgres + `}}`},
		{true, false, http.StatusServiceUnavailable, `{"status":"not ready","missing":["postgres"],"reasons":{` + noPostgres + `}}`},
		{false, false, http.StatusOK, `{"status":"ready","missing":[]}`},
	} {
		pg.set(step.postgres)
		ch.set(step.clickhouse)
		w.until("readyz says "+step.said, func() bool {
			status, said, alive := probe(base)
			if alive != http.StatusOK {
				t.Errorf("healthz: %d", alive)
			}
			return status == step.status && said == step.said
		})
	}
}

// TestAPoolHasTheSizeThatItsURLNames runs everything on a URL that sets the size of the pool.
func TestAPoolHasTheSizeThatItsURLNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	u, err := url.Parse(w.pgURL)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("pool_max_conns", "3")
	u.RawQuery = query.Encode()
	if err := postgres.Migrate(t.Context(), u.String(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	base, logged := w.replica(func(o *app.Options) { o.PostgresURL = u.String() })
	w.until("it is ready", func() bool { status, _, _ := probe(base); return status == http.StatusOK })
	w.rule(w.webhook("hook"))
	w.fail(w.ch.Now(t), "a")
	w.until("the message is delivered", func() bool { return len(w.receiver.received()) == 1 })
	if strings.Contains(logged.String(), "pool_max_conns") {
		t.Errorf("something does not understand the URL: %s", logged.String())
	}
}
