package wire_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tocsin/internal/socket"
	"tocsin/notify/webhook/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newClient(t *testing.T, change ...func(*wire.Options)) *wire.Client {
	t.Helper()
	o := wire.Options{
		Dial: new(net.Dialer).DialContext, HandshakeTimeout: time.Minute, MaxHead: 64 << 10, MaxDrain: 64 << 10,
		MaxIdle: 100, MaxIdlePerHost: 100, IdleFor: time.Minute,
	}
	for _, f := range change {
		f(&o)
	}
	c := wire.New(o)
	t.Cleanup(c.Close)
	return c
}

// counted counts the connections that are dialled.
func counted(n *atomic.Int32) func(*wire.Options) {
	return seen(func(net.Conn) { n.Add(1) })
}

// seen is told of each connection that is dialled.
func seen(tell func(net.Conn)) func(*wire.Options) {
	return func(o *wire.Options) {
		dial := o.Dial
		o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if err == nil {
				tell(conn)
			}
			return conn, err
		}
	}
}

// untilHeard waits until what the other end did, which may not have arrived when it
// has done it, shows on a connection. One that is closed has heard it.
func untilHeard(t *testing.T, conn net.Conn) {
	t.Helper()
	for socket.IsQuiet(conn) {
		select {
		case <-t.Context().Done():
			t.Fatal("nothing came")
		case <-time.After(time.Millisecond):
		}
	}
}

func request(t *testing.T, to, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func call(t *testing.T, c *wire.Client, r *http.Request) (wire.Answer, bool, error) {
	t.Helper()
	return c.Call(t.Context(), r, 4<<10)
}

// echo answers with what it was sent.
func echo(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	return server
}

// accept has each connection served beside the others, and waits for all of them.
func accept(t *testing.T, serve func(net.Conn)) (to string) {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close() //nolint:errcheck // it may be closed
				serve(conn)
			})
		}
	})
	t.Cleanup(func() { _ = listener.Close(); all.Wait() })
	return "http://" + listener.Addr().String()
}

func readRequest(r *bufio.Reader) error {
	request, err := http.ReadRequest(r)
	if err == nil {
		_, err = io.Copy(io.Discard, request.Body)
	}
	return err
}

// Each call gets the answer to its own request, however many share the connections.
func TestCallsBesideEachOther(t *testing.T) {
	server := echo(t)
	var dialled atomic.Int32
	c := newClient(t, counted(&dialled))
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for j := range 50 {
				want := strings.Repeat(fmt.Sprintf("%d/%d ", i, j), 1+j*20)
				a, _, err := c.Call(t.Context(), request(t, server.URL, want), 1<<20)
				if err != nil || string(a.Body) != want || a.Head.StatusCode != http.StatusOK {
					t.Errorf("%d bytes for %d, %v", len(a.Body), len(want), err)
				}
			}
		})
	}
	all.Wait()
	if n := dialled.Load(); n > 16 {
		t.Errorf("%d connections for 16 calls at a time", n)
	}
}

// What follows a call on its connection is no answer to the next one.
func TestOnlyWhatHasEndedIsUsedAgain(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	for name, c := range map[string]struct {
		first string
		again bool
	}{
		"length":              {ok, true},
		"chunks":              {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", true},
		"no body":             {"HTTP/1.1 204 No Content\r\n\r\n", true},
		"more than is kept":   {"HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n" + strings.Repeat("x", 20_000), true},
		"more than is read":   {"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + strings.Repeat("x", 200_000), false},
		"two answers":         {ok + strings.Replace(ok, "ok", "no", 1), false},
		"trailing garbage":    {ok + "garbage", false},
		"chunks, and garbage": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\ngarbage", false},
		"asked to close":      {strings.Replace(ok, "\r\n", "\r\nConnection: close\r\n", 1), false},
		"until it is closed":  {"HTTP/1.0 200 OK\r\n\r\nok", false},
		"switched":            {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			var dialled atomic.Int32
			to := accept(t, func(conn net.Conn) {
				r := bufio.NewReader(conn)
				for i := 0; readRequest(r) == nil; i++ {
					text := ok
					if i == 0 && dialled.Load() == 1 {
						text = c.first
					}
					_, _ = io.WriteString(conn, text)
					if strings.HasPrefix(text, "HTTP/1.0") {
						return
					}
				}
			})
			client := newClient(t, counted(&dialled))
			if _, _, err := call(t, client, request(t, to, "x")); err != nil {
				t.Fatal(err)
			}
			a, _, err := call(t, client, request(t, to, "x"))
			if err != nil || string(a.Body) != "ok" {
				t.Errorf("the second answer is %q, %v", a.Body, err)
			}
			if again := dialled.Load() == 1; again != c.again {
				t.Errorf("%d connections", dialled.Load())
			}
		})
	}
}

// A connection that the receiver has closed, or on which it has said something
// unasked, is not used: the call never notices.
func TestIdleConnectionsAreLookedAt(t *testing.T) {
	for name, farewell := range map[string]string{
		"closed": "", "said something": "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			var dialled []net.Conn
			said, done := make(chan struct{}, 10), make(chan struct{})
			to := accept(t, func(conn net.Conn) {
				if readRequest(bufio.NewReader(conn)) != nil {
					return
				}
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"+farewell)
				if farewell == "" {
					_ = conn.Close()
				}
				said <- struct{}{}
				<-done
			})
			t.Cleanup(func() { close(done) })
			c := newClient(t, seen(func(conn net.Conn) { dialled = append(dialled, conn) }))
			for range 10 {
				if _, _, err := call(t, c, request(t, to, "x")); err != nil {
					t.Fatal(err)
				}
				<-said
				untilHeard(t, dialled[len(dialled)-1])
			}
			if len(dialled) != 10 {
				t.Errorf("%d connections for 10 calls", len(dialled))
			}
		})
	}
}

// A receiver may answer a long request without reading it, and wait.
func TestAnswerBeforeTheRequestIsRead(t *testing.T) {
	done := make(chan struct{})
	to := accept(t, func(conn net.Conn) {
		_, _ = io.ReadFull(conn, make([]byte, 1000))
		_, _ = io.WriteString(conn, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
		<-done
	})
	t.Cleanup(func() { close(done) })
	a, _, err := call(t, newClient(t), request(t, to, strings.Repeat("x", 64<<20)))
	if err != nil || a.Head.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("%+v, %v", a, err)
	}
}

// Whether anything was sent is told as it was, wherever a call is ended.
func TestEndedByItsContext(t *testing.T) {
	arrived, done := make(chan struct{}, 1), make(chan struct{})
	silent := accept(t, func(conn net.Conn) {
		_, _ = io.ReadFull(conn, make([]byte, 1))
		arrived <- struct{}{}
		<-done
	})
	unread := accept(t, func(net.Conn) {
		arrived <- struct{}{}
		<-done
	})
	t.Cleanup(func() { close(done) })
	for name, c := range map[string]struct {
		to      string
		body    string
		nothing bool
	}{
		"while it waits for the answer": {silent, "x", false},
		"while it shakes hands":         {strings.Replace(silent, "http:", "https:", 1), "x", true},
		"while it shakes hands, unread": {strings.Replace(unread, "http:", "https:", 1), "x", true},
		"while it writes":               {silent, strings.Repeat("x", 64<<20), false},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-arrived; cancel() }()
			_, nothing, err := newClient(t).Call(ctx, request(t, c.to, c.body), 10)
			if !errors.Is(err, context.Canceled) || nothing != c.nothing {
				t.Errorf("nothing sent %t, %v", nothing, err)
			}
			// Before it began.
			if _, nothing, err := newClient(t).Call(ctx, request(t, c.to, c.body), 10); !errors.Is(err, context.Canceled) || !nothing {
				t.Errorf("nothing sent %t, %v", nothing, err)
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	slow := newClient(t, func(o *wire.Options) {
		o.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, errors.New("i/o timeout")
		}
	})
	if _, nothing, err := slow.Call(ctx, request(t, silent, "x"), 10); !errors.Is(err, context.DeadlineExceeded) || !nothing {
		t.Errorf("while it dials: nothing sent %t, %v", nothing, err)
	}
}

func TestHandshakeIsBounded(t *testing.T) {
	done := make(chan struct{})
	to := accept(t, func(net.Conn) { <-done })
	t.Cleanup(func() { close(done) })
	c := newClient(t, func(o *wire.Options) { o.HandshakeTimeout = 30 * time.Millisecond })
	_, nothing, err := call(t, c, request(t, strings.Replace(to, "http:", "https:", 1), "x"))
	if err == nil || !nothing || !strings.Contains(err.Error(), "30ms") {
		t.Errorf("nothing sent %t, %v", nothing, err)
	}
}

// Over TLS, too, connections are used again, and looked at before.
func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	var dialled []net.Conn
	c := newClient(t, seen(func(conn net.Conn) { dialled = append(dialled, conn) }), func(o *wire.Options) { o.TLS = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12} })
	for i := range 10 {
		if i == 5 {
			server.CloseClientConnections()
			untilHeard(t, dialled[len(dialled)-1])
		}
		want := strings.Repeat(strconv.Itoa(i), 100_000*(i%2)+1)
		a, _, err := c.Call(t.Context(), request(t, server.URL, want), 1<<20)
		if err != nil || string(a.Body) != want || a.Head.ProtoMajor != 1 {
			t.Errorf("%s, %d bytes for %d, %v", a.Head.Proto, len(a.Body), len(want), err)
		}
	}
	if n := len(dialled); n < 2 || n > 6 {
		t.Errorf("%d connections", n)
	}
}

// What waits is bounded, and closed in the end.
func TestIdleConnectionsAreBounded(t *testing.T) {
	servers := []*httptest.Server{echo(t), echo(t)}
	for name, c := range map[string]struct {
		most, mostPerHost, want int
	}{
		"of a host": {100, 3, 6}, "in all": {4, 3, 4}, "none": {0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			open := newOpen()
			client := newClient(t, open.watch, func(o *wire.Options) { o.MaxIdle, o.MaxIdlePerHost = c.most, c.mostPerHost })
			var all sync.WaitGroup
			for i := range together {
				all.Go(func() {
					if _, _, err := call(t, client, request(t, servers[i%2].URL, "x")); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if n := open.count.Load(); int(n) != c.want {
				t.Errorf("%d connections are left, want %d", n, c.want)
			}
			client.Close()
			if n := open.count.Load(); n != 0 {
				t.Errorf("%d connections are left at the end", n)
			}
			if _, _, err := call(t, client, request(t, servers[0].URL, "x")); err != nil || open.count.Load() != 0 {
				t.Errorf("after the end: %v, %d connections are left", err, open.count.Load())
			}
		})
	}
}

// open counts the connections that are open. The first ten dials wait for each other,
// so that each of ten calls makes a connection.
type open struct {
	count atomic.Int32
	first sync.WaitGroup
}

const together = 10

func newOpen() *open {
	o := new(open)
	o.first.Add(together)
	return o
}

func (o *open) watch(options *wire.Options) {
	dial := options.Dial
	var n atomic.Int32
	options.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if n.Add(1) <= together {
			o.first.Done()
			o.first.Wait()
		}
		o.count.Add(1)
		return &watched{TCPConn: conn.(*net.TCPConn), open: o}, nil
	}
}

type watched struct {
	*net.TCPConn

	open *open
	once sync.Once
}

func (w *watched) Close() error {
	w.once.Do(func() { w.open.count.Add(-1) })
	return w.TCPConn.Close()
}

// A connection that nobody uses is closed after a while, one that is used is kept.
func TestIdleConnectionsGrowOld(t *testing.T) {
	server := echo(t)
	open := newOpen()
	c := newClient(t, open.watch, func(o *wire.Options) { o.IdleFor = 20 * time.Millisecond })
	var all sync.WaitGroup
	for range together {
		all.Go(func() {
			if _, _, err := call(t, c, request(t, server.URL, "x")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for open.count.Load() > 0 {
		select {
		case <-t.Context().Done():
			t.Fatalf("%d connections are left", open.count.Load())
		case <-time.After(time.Millisecond):
		}
	}
	if _, _, err := call(t, c, request(t, server.URL, "x")); err != nil {
		t.Error(err)
	}
}

func TestRefusedRequests(t *testing.T) {
	c := newClient(t, func(o *wire.Options) {
		o.Dial = func(_ context.Context, _, address string) (net.Conn, error) {
			return nil, fmt.Errorf("dialled %s", address)
		}
	})
	for name, r := range map[string]struct {
		url    string
		header http.Header
		want   string
	}{
		"name of a header":  {"http://a.example", http.Header{"A B": {"x"}}, `"A B"`},
		"value of a header": {"http://a.example", http.Header{"Secret": {"s3cret\r\nX: y"}}, `"Secret"`},
		"port":              {"http://a.example", nil, "dialled a.example:80"},
		"port of https":     {"https://a.example", nil, "dialled a.example:443"},
		"port of its own":   {"https://a.example:99", nil, "dialled a.example:99"},
		"IPv6":              {"http://[::1]:9/", nil, "dialled [::1]:9"},
		"other letters":     {"http://bücher.example/", nil, "dialled xn--bcher-kva.example:80"},
		"no name":           {"http://a\u200db.example/", nil, "the name of the host"},
	} {
		t.Run(name, func(t *testing.T) {
			u, err := url.Parse(r.url)
			if err != nil {
				t.Fatal(err)
			}
			_, nothing, err := call(t, c, &http.Request{Method: http.MethodPost, URL: u, Header: r.header})
			if err == nil || !nothing || !strings.Contains(err.Error(), r.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("nothing sent %t, %v", nothing, err)
			}
		})
	}
}

// BenchmarkCall compares a call with that of a client that shares its connections.
func BenchmarkCall(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	b.Cleanup(server.Close)
	to, err := url.Parse(server.URL)
	if err != nil {
		b.Fatal(err)
	}
	content := bytes.Repeat([]byte("x"), 900)
	post := func(ctx context.Context) *http.Request {
		r := &http.Request{
			Method: http.MethodPost, URL: to, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(content)), ContentLength: int64(len(content)),
		}
		return r.WithContext(ctx)
	}
	b.Run("wire", func(b *testing.B) {
		c := wire.New(wire.Options{Dial: new(net.Dialer).DialContext, MaxHead: 64 << 10, MaxDrain: 64 << 10, MaxIdle: 100, MaxIdlePerHost: 100, IdleFor: time.Minute})
		defer c.Close()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, _, err := c.Call(b.Context(), post(b.Context()), 100); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("net/http", func(b *testing.B) {
		transport := &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true}
		defer transport.CloseIdleConnections()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				resp, err := transport.RoundTrip(post(b.Context()))
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	})
}
