//go:build unix

package torture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Every row reaches the second engine later than the first by such a lag.
const (
	shortestLag = time.Second
	longestLag  = 4 * time.Second
)

// source is where exchanges are stored: one ClickHouse engine, or two behind a front that uses them
// in turn.
type source struct {
	engines []*clickHouse
	front   *front

	mu sync.Mutex
	// lags are drawn from the seed, one for each batch.
	lags *rand.Rand
	// last is closed when the second engine has the last batch; nil before the first.
	last chan struct{}
	// late are the batches that are under way to the second engine; the writer waits for them.
	late sync.WaitGroup
}

func startSource(ctx context.Context, o *Options) (*source, error) {
	s := &source{lags: rand.New(rand.NewPCG(o.Seed, streamLag))}
	names := []string{"clickhouse"}
	if o.Form == LaggingReplica {
		names = append(names, "clickhouse-lagging")
	}
	for _, name := range names {
		engine, err := startClickHouse(ctx, o.Devstack, o.ClickHouse, o.Dir, name)
		if engine != nil {
			s.engines = append(s.engines, engine)
		}
		if err != nil {
			return s, err
		}
	}
	if len(s.engines) == 1 {
		return s, nil
	}
	var err error
	s.front, err = newFront(s.engines)
	return s, err
}

// address is the address for the product.
func (s *source) address() string {
	if s.front != nil {
		return s.front.listener.Addr().String()
	}
	return s.engines[0].address()
}

// prepare creates the table on each engine.
func (s *source) prepare(ctx context.Context, ddl string) error {
	for _, engine := range s.engines {
		if _, err := engine.do(ctx, ddl, nil); err != nil {
			return err
		}
	}
	return nil
}

// crash kills one of the engines and starts it again after a while.
func (s *source) crash(ctx context.Context, which int, down time.Duration) error {
	return s.engines[which%len(s.engines)].crash(ctx, down)
}

func (s *source) stop(ctx context.Context) error {
	s.late.Wait()
	var errs []error
	if s.front != nil {
		errs = append(errs, s.front.server.Close())
	}
	for _, engine := range s.engines {
		errs = append(errs, engine.stop(ctx))
	}
	return errors.Join(errs...)
}

// insert writes a batch, repeating it until it is accepted, and calls visible once every engine
// shows it.
func (s *source) insert(ctx context.Context, statement string, data []byte, failed func(error), visible func()) error {
	if err := s.engines[0].persist(ctx, statement, data, failed); err != nil {
		return err
	}
	if len(s.engines) == 1 {
		visible()
		return nil
	}
	s.mu.Lock()
	lag := shortestLag + time.Duration(s.lags.Int64N(int64(longestLag-shortestLag)))
	s.mu.Unlock()
	data = bytes.Clone(data)
	before, done := s.last, make(chan struct{})
	s.last = done
	// In the order of the first engine: of two rows of an exchange the later one counts.
	s.late.Go(func() {
		defer close(done)
		if !pause(ctx.Done(), lag) {
			return
		}
		if before != nil {
			<-before
		}
		if s.engines[1].persist(ctx, statement, data, failed) == nil {
			visible()
		}
	})
	return nil
}

// persist writes a batch until it is accepted. A failed insert may have written some rows: these
// then exist twice.
func (c *clickHouse) persist(ctx context.Context, statement string, data []byte, failed func(error)) error {
	for {
		_, err := c.do(ctx, statement, data)
		if err == nil {
			return nil
		}
		failed(err)
		if !pause(ctx.Done(), 100*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// complete checks that each engine has every exchange; otherwise all other checks would be
// meaningless.
func (s *source) complete(ctx context.Context, want int) error {
	for i, engine := range s.engines {
		said, err := engine.do(ctx, "SELECT uniqExact(correlation_id) FROM exchanges WHERE status != 'RUNNING'", nil)
		if err != nil {
			return err
		}
		if held, err := strconv.Atoi(strings.TrimSpace(said)); err != nil || held != want {
			return fmt.Errorf("ClickHouse %d holds %q of %d exchanges", i, said, want)
		}
	}
	return nil
}

// front is one address for several engines. Each request goes to the next one, whatever its
// connection.
type front struct {
	listener net.Listener
	server   *http.Server
}

func newFront(engines []*clickHouse) (*front, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // listening on loopback does not wait
	if err != nil {
		return nil, err
	}
	var asked atomic.Int64
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", engines[int(asked.Add(1))%len(engines)].address()
		},
		// The client gets Bad Gateway from an engine that is down.
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
		FlushInterval: -1,
	}
	f := &front{listener: listener, server: &http.Server{Handler: proxy, ReadHeaderTimeout: 10 * time.Second}}
	go func() { _ = f.server.Serve(listener) }()
	return f, nil
}
