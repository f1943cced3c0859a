package webhook_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"tocsin/notify"
	"tocsin/notify/webhook"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// raw starts a server whose connections are handled by the test.
func raw(t *testing.T, serve func(net.Conn)) (url string) {
	t.Helper()
	listener := listen(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serve(conn)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = listener.Close(); <-done })
	return "http://" + listener.Addr().String()
}

// readRequest reads one request to its end.
func readRequest(r *bufio.Reader) error {
	req, err := http.ReadRequest(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, req.Body)
	return err
}

func reset(conn net.Conn) { _ = conn.(*net.TCPConn).SetLinger(0) }

func TestNetworkFailures(t *testing.T) {
	quiet := log.New(io.Discard, "", 0)
	secure := httptest.NewUnstartedServer(answer(200, nil, "ok"))
	secure.Config.ErrorLog = quiet
	secure.StartTLS()
	t.Cleanup(secure.Close)
	released := make(chan struct{})
	slowHeader := receiver(t, func(http.ResponseWriter, *http.Request) { <-released })
	slowBody := func(status int) *httptest.Server {
		return receiver(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
			<-released
		})
	}
	slowOK, slowError := slowBody(200), slowBody(500)
	t.Cleanup(func() { close(released) })

	said := func(text string) string {
		return raw(t, func(conn net.Conn) {
			if readRequest(bufio.NewReader(conn)) == nil {
				_, _ = io.WriteString(conn, text)
			}
			reset(conn)
		})
	}
	for name, c := range map[string]struct {
		url     string
		timeout time.Duration
		verdict notify.Verdict
		status  int
		nothing bool
		error   string
	}{
		"refused dial":        {"http://127.0.0.1:1", time.Minute, notify.VerdictRetry, 0, true, "connection refused"},
		"unknown host":        {"http://no-such-host.invalid/", time.Minute, notify.VerdictRetry, 0, true, "no-such-host.invalid"},
		"unknown authority":   {secure.URL, time.Minute, notify.VerdictRetry, 0, true, "certificate"},
		"no TLS":              {strings.Replace(said("x"), "http:", "https:", 1), time.Minute, notify.VerdictRetry, 0, true, ""},
		"reset before answer": {said(""), time.Minute, notify.VerdictRetry, 0, false, ""},
		"reset in the head":   {said("HTTP/1.1 200 OK\r\nContent-"), time.Minute, notify.VerdictRetry, 0, false, ""},
		"reset in the body":   {said("HTTP/1.1 500 Oops\r\nContent-Length: 9\r\n\r\nhalf"), time.Minute, notify.VerdictRetry, 500, false, "500"},
		"reset after success": {said("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"), time.Minute, notify.VerdictDelivered, 200, false, ""},
		"not HTTP":            {said("220 smtp.example ESMTP\r\n"), time.Minute, notify.VerdictRetry, 0, false, "malformed"},
		"huge head":           {said("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n"), time.Minute, notify.VerdictRetry, 0, false, ""},
		"slow head":           {slowHeader.URL, 60 * time.Millisecond, notify.VerdictRetry, 0, false, "No response within 60ms"},
		"slow body":           {slowError.URL, 60 * time.Millisecond, notify.VerdictRetry, 500, false, "500"},
		"slow success":        {slowOK.URL, 60 * time.Millisecond, notify.VerdictDelivered, 200, false, ""},
		"not a URL":           {"http://[::1/%zz", time.Minute, notify.VerdictRefused, 0, true, "URL"},
		"other scheme":        {"file:///etc/passwd", time.Minute, notify.VerdictRefused, 0, true, "https://"},
	} {
		t.Run(name, func(t *testing.T) {
			o := send(t, newSender(t), delivery(c.url, within(c.timeout)))
			if o.Verdict != c.verdict || o.StatusCode != c.status || o.NothingSent != c.nothing || !strings.Contains(o.Error, c.error) {
				t.Errorf("outcome %+v, want %v, status %d, nothing sent %t, error …%s…", o, c.verdict, c.status, c.nothing, c.error)
			}
			if (o.Error == "") != (c.verdict == notify.VerdictDelivered) {
				t.Errorf("error %q", o.Error)
			}
		})
	}
}

// A receiver that switches protocols without being asked and then sends nothing blocks no attempt
// for longer than its header takes.
func TestSwitchingProtocols(t *testing.T) {
	hold := make(chan struct{})
	url := raw(t, func(conn net.Conn) {
		if readRequest(bufio.NewReader(conn)) == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		}
		<-hold
	})
	t.Cleanup(func() { close(hold) })
	if o := send(t, newSender(t), delivery(url)); o.Verdict != notify.VerdictRefused || o.StatusCode != http.StatusSwitchingProtocols {
		t.Errorf("outcome %+v", o)
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	var requests atomic.Int32
	server := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
	})
	if o := send(t, newSender(t), delivery(server.URL)); o.Verdict != notify.VerdictRefused || requests.Load() != 1 {
		t.Errorf("outcome %+v after %d requests", o, requests.Load())
	}
}

// A server that accepts a request on a reused connection and closes it without a response may have
// acted on it: the transport must not repeat it by itself.
func TestRequestIsNeverSentTwice(t *testing.T) {
	var requests, connections atomic.Int32
	url := raw(t, func(conn net.Conn) {
		connections.Add(1)
		r := bufio.NewReader(conn)
		for readRequest(r) == nil {
			if requests.Add(1)%2 == 0 {
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	s := newSender(t)
	d := delivery(url, func(d *notify.Delivery) { d.Webhook.Headers = map[string]string{"Idempotency-Key": "k"} })
	if o := send(t, s, d); o.Verdict != notify.VerdictDelivered {
		t.Fatalf("first outcome %+v", o)
	}
	o := send(t, s, d)
	if o.Verdict != notify.VerdictRetry || o.NothingSent {
		t.Errorf("second outcome %+v, want a retry of something sent", o)
	}
	if requests.Load() != 2 || connections.Load() != 1 {
		t.Errorf("%d requests over %d connections for 2 attempts, want 2 over 1", requests.Load(), connections.Load())
	}
}

func TestConnectionsAreReused(t *testing.T) {
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(answer(200, nil, strings.Repeat("x", 50<<10)))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	s := newSender(t)
	for range 5 {
		if o := send(t, s, delivery(server.URL)); o.Verdict != notify.VerdictDelivered {
			t.Fatal(o)
		}
	}
	if connections.Load() != 1 {
		t.Errorf("%d connections for 5 attempts", connections.Load())
	}
}

func TestAnswerIsBounded(t *testing.T) {
	server := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		chunk := bytes.Repeat([]byte("a\x00\xff😀\x1b"), 1000)
		for range 10_000 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	o := send(t, newSender(t), delivery(server.URL))
	if o.Verdict != notify.VerdictRetry || len(o.Response) == 0 || len(o.Response) > 4<<10 {
		t.Errorf("%v with %d bytes", o.Verdict, len(o.Response))
	}
	if !utf8.ValidString(o.Response) || strings.ContainsAny(o.Response, "\x00\x1b") {
		t.Errorf("response %q", o.Response)
	}
}

func TestStoppedByItsCaller(t *testing.T) {
	arrived, released := make(chan struct{}), make(chan struct{})
	server := receiver(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(arrived)
		<-released
	})
	t.Cleanup(func() { close(released) })
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	if o := newSender(t).Send(ctx, delivery(server.URL)); o.Verdict != notify.VerdictUnknown || o.NothingSent || o.Error == "" {
		t.Errorf("outcome after the request was sent: %+v, want unknown", o)
	}
	if o := newSender(t).Send(ctx, delivery(server.URL)); o.Verdict != notify.VerdictRetry || !o.NothingSent {
		t.Errorf("outcome before anything was sent: %+v, want a retry", o)
	}
}

func TestAddressesAreGuarded(t *testing.T) {
	s := newSender(t, func(o *webhook.Options) { o.AllowedNetworks = nil })
	for _, host := range []string{
		"127.0.0.1", "localhost", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "224.0.0.1", "255.255.255.255",
		"[::1]", "[::]", "[fe80::1]", "[fc00::1]", "[ff02::1]", "[::ffff:127.0.0.1]", "[::ffff:169.254.169.254]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
	} {
		t.Run(host, func(t *testing.T) {
			o := send(t, s, delivery("http://"+host+":9/"))
			if o.Verdict != notify.VerdictRetry || !o.NothingSent || !strings.Contains(o.Error, "not public") {
				t.Errorf("outcome %+v, want the guard's refusal", o)
			}
		})
	}
}

func TestProxyIsNotTaken(t *testing.T) {
	var proxied atomic.Int32
	proxy := receiver(t, func(http.ResponseWriter, *http.Request) { proxied.Add(1) })
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	server := receiver(t, answer(200, nil, ""))
	url := strings.Replace(server.URL, "127.0.0.1", "127.0.0.2", 1)
	_ = send(t, newSender(t), delivery(url))
	if proxied.Load() != 0 {
		t.Error("the request went to the proxy of the environment")
	}
}

// HTTP/2 is used with a server that offers it.
func TestOwnAuthorities(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, r.Proto) }))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	s := newSender(t, func(o *webhook.Options) { o.RootCAs = roots })
	if o := send(t, s, delivery(server.URL)); o.Verdict != notify.VerdictDelivered || o.Response != "HTTP/2.0" {
		t.Errorf("outcome %+v", o)
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := webhook.New(webhook.Options{}); err == nil {
		t.Error("no clock was accepted")
	}
	if _, err := webhook.New(webhook.Options{Now: time.Now, AllowedNetworks: []netip.Prefix{{}}}); err == nil {
		t.Error("an invalid network was accepted")
	}
}
