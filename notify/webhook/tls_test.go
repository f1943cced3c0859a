package webhook_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"tocsin/notify"
	"tocsin/notify/webhook"
)

// secure starts a server with TLS, and HTTP/2 if requested, and a sender that trusts it.
func secure(t *testing.T, h http.HandlerFunc, change func(*httptest.Server)) (*httptest.Server, *webhook.Sender) {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = quietLog()
	change(server)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, newSender(t, func(o *webhook.Options) { o.RootCAs = rootsOf(server) })
}

func quietLog() *log.Logger { return log.New(io.Discard, "", 0) }

func rootsOf(server *httptest.Server) *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return roots
}

// TestOneConnectionCarriesManyCalls makes many calls over HTTP/2 at once.
func TestOneConnectionCarriesManyCalls(t *testing.T) {
	var connections, calls atomic.Int32
	server, s := secure(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprint(w, r.ProtoMajor, len(body))
	}, func(server *httptest.Server) {
		server.EnableHTTP2 = true
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				connections.Add(1)
			}
		}
	})
	if o := send(t, s, delivery(server.URL)); o.Verdict != notify.VerdictDelivered || o.Response != "2 7" {
		t.Fatalf("outcome %+v", o)
	}
	var ended sync.WaitGroup
	for range 50 {
		ended.Go(func() {
			if o := send(t, s, delivery(server.URL)); o.Verdict != notify.VerdictDelivered {
				t.Errorf("outcome %+v", o)
			}
		})
	}
	ended.Wait()
	if connections.Load() != 1 || calls.Load() != 51 {
		t.Errorf("%d connections for %d calls, want 1 for 51", connections.Load(), calls.Load())
	}
}

// TestHTTP2NeverSendsTwice resets streams after the request has been read, and the connection with
// all its calls.
func TestHTTP2NeverSendsTwice(t *testing.T) {
	var calls atomic.Int32
	server, s := secure(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if calls.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
	}, func(server *httptest.Server) { server.EnableHTTP2 = true })
	idempotent := func(d *notify.Delivery) { d.Webhook.Headers = map[string]string{"Idempotency-Key": "k"} }
	if o := send(t, s, delivery(server.URL, idempotent)); o.Verdict != notify.VerdictDelivered {
		t.Fatalf("outcome %+v", o)
	}
	for n := int32(2); n < 10; n++ {
		if o := send(t, s, delivery(server.URL, idempotent)); o.Verdict != notify.VerdictRetry || o.NothingSent || calls.Load() != n {
			t.Errorf("outcome %+v after %d calls, want something sent once", o, calls.Load())
		}
	}
}

// TestHTTP2SendsNothingTwiceThatWasRefused refuses streams once their requests have been read, as a
// receiver may that has done nothing with them: a transport repeats such requests if it can.
func TestHTTP2SendsNothingTwiceThatWasRefused(t *testing.T) {
	var calls atomic.Int32
	server, s := secure(t, nil, func(server *httptest.Server) {
		server.EnableHTTP2 = true
		server.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){
			"h2": func(_ *http.Server, conn *tls.Conn, _ http.Handler) { refuseStreams(conn, &calls) },
		}
	})
	for n := int32(1); n < 4; n++ {
		if o := send(t, s, delivery(server.URL)); o.Verdict != notify.VerdictRetry || o.NothingSent || calls.Load() != n {
			t.Errorf("outcome %+v after %d calls, want something sent once", o, calls.Load())
		}
	}
}

// refuseStreams uses HTTP/2, and refuses each request that has arrived completely.
func refuseStreams(conn net.Conn, calls *atomic.Int32) {
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	framer := http2.NewFramer(conn, conn)
	for err := framer.WriteSettings(); err == nil; {
		var frame http2.Frame
		if frame, err = framer.ReadFrame(); err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				err = framer.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !frame.IsAck() {
				err = framer.WritePing(true, frame.Data)
			}
		case *http2.DataFrame:
			if frame.StreamEnded() {
				calls.Add(1)
				err = framer.WriteRSTStream(frame.StreamID, http2.ErrCodeRefusedStream)
			}
		}
	}
}

// TestSessionsAreResumed makes new connections: their handshakes are short.
func TestSessionsAreResumed(t *testing.T) {
	var resumed atomic.Int32
	server, s := secure(t, func(w http.ResponseWriter, r *http.Request) {
		if r.TLS.DidResume {
			resumed.Add(1)
		}
		w.Header().Set("Connection", "close")
	}, func(*httptest.Server) {})
	for range 4 {
		if o := send(t, s, delivery(server.URL)); o.Verdict != notify.VerdictDelivered {
			t.Fatalf("outcome %+v", o)
		}
	}
	if resumed.Load() != 3 {
		t.Errorf("%d of 3 later handshakes resumed the session", resumed.Load())
	}
}

// TestClientCertificates has a receiver that requires a certificate: each webhook presents its own,
// even if another one calls the same host.
func TestClientCertificates(t *testing.T) {
	first, firstRoot := certificate(t, "first")
	second, secondRoot := certificate(t, "second")
	server, s := secure(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.TLS.PeerCertificates[0].Subject.CommonName)
	}, func(server *httptest.Server) {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(firstRoot)
		roots.AppendCertsFromPEM(secondRoot)
		server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots, MinVersion: tls.VersionTLS12}
	})
	with := func(n byte, pair string) *notify.Delivery {
		return delivery(server.URL, func(d *notify.Delivery) { d.Webhook.ID[1], d.Webhook.ClientCertificate = n, pair })
	}
	for range 2 {
		for n, pair := range []string{first, second} {
			want := []string{"first", "second"}[n]
			if o := send(t, s, with(byte(n), pair)); o.Verdict != notify.VerdictDelivered || o.Response != want {
				t.Errorf("outcome %+v, want the certificate of %s", o, want)
			}
		}
	}
	if o := send(t, s, with(3, "")); o.Verdict != notify.VerdictRetry {
		t.Errorf("without a certificate: %+v", o)
	}
	if o := send(t, s, with(4, "nonsense")); o.Verdict != notify.VerdictRefused || !o.NothingSent || !strings.Contains(o.Error, "client certificate") {
		t.Errorf("with one that cannot be read: %+v", o)
	}
}

// certificate creates a self-signed certificate, and returns it with its key, and without.
func certificate(t *testing.T, name string) (pair string, root []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, made, made, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	root = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return string(root) + string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})), root
}

// TestABodyThatNeverEnds checks that it does not block an attempt until its timeout.
func TestABodyThatNeverEnds(t *testing.T) {
	released := make(chan struct{})
	server := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok")
		_ = http.NewResponseController(w).Flush()
		<-released
	})
	t.Cleanup(func() { close(released) })
	o := send(t, newSender(t), delivery(server.URL, within(time.Minute)))
	if o.Verdict != notify.VerdictDelivered || o.Response != "ok" || o.Duration > 20*time.Second {
		t.Errorf("outcome %+v after %v", o, o.Duration)
	}
}

// forward is a proxy that connects, and counts.
type forward struct {
	url     string
	asked   chan string
	refuses atomic.Bool
}

func newForward(t *testing.T) *forward {
	t.Helper()
	f := &forward{asked: make(chan string, 100)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.asked <- r.Method + " " + r.Host + " " + r.Header.Get("Proxy-Authorization")
		if f.refuses.Load() {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		var dialer net.Dialer
		target, err := dialer.DialContext(context.WithoutCancel(r.Context()), "tcp", r.Host)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
		done := make(chan struct{})
		go func() { _, _ = io.Copy(conn, target); _ = conn.Close(); close(done) }()
		_, _ = io.Copy(target, buffered)
		_ = target.Close()
		<-done
	}))
	t.Cleanup(server.Close)
	f.url = strings.Replace(server.URL, "http://", "http://user:secret@", 1)
	return f
}

func (f *forward) was() string {
	select {
	case asked := <-f.asked:
		return asked
	default:
		return ""
	}
}

// TestProxy sends through a forward proxy; the target is checked before the proxy is called.
func TestProxy(t *testing.T) {
	f := newForward(t)
	// httpproxy calls this machine directly, whatever is configured: a test needs a name of its
	// own.
	server, _ := secure(t, func(http.ResponseWriter, *http.Request) {}, func(server *httptest.Server) { server.EnableHTTP2 = true })
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	through := func(change ...func(*webhook.Options)) *webhook.Sender {
		return newSender(t, append([]func(*webhook.Options){func(o *webhook.Options) {
			o.RootCAs, o.Proxy = rootsOf(server), webhook.Proxy{URL: f.url, Resolves: true}
		}}, change...)...)
	}
	// Only the proxy can resolve the name; there is no such host.
	if o := send(t, through(), delivery("https://hooks.invalid:"+port)); o.Verdict != notify.VerdictRetry || !o.NothingSent || !strings.Contains(o.Error, "502") {
		t.Errorf("outcome %+v, want that the proxy cannot connect", o)
	}
	if asked := f.was(); asked != "CONNECT hooks.invalid:"+port+" Basic dXNlcjpzZWNyZXQ=" {
		t.Errorf("the proxy was asked %q", asked)
	}
	// An address is checked in any case, and so is a name that is resolved here.
	for url, resolves := range map[string]bool{"https://10.1.2.3:" + port: true, "https://[64:ff9b::a01:203]:" + port: true, "https://10.1.2.3:1": false} {
		s := through(func(o *webhook.Options) { o.Proxy.Resolves = resolves })
		if o := send(t, s, delivery(url)); o.Verdict != notify.VerdictRetry || !o.NothingSent || !strings.Contains(o.Error, "not public") || f.was() != "" {
			t.Errorf("%s: %+v, want the guard's refusal before the proxy is asked", url, o)
		}
	}
	// An allowed address is called through the proxy, over TLS with the receiver.
	allowed := func(o *webhook.Options) {
		o.AllowedNetworks = append(o.AllowedNetworks, netip.MustParsePrefix("192.0.2.0/24"))
	}
	f.refuses.Store(true)
	o := send(t, through(allowed), delivery("https://192.0.2.1:"+port))
	if o.Verdict != notify.VerdictRetry || !o.NothingSent || !strings.Contains(o.Error, "403 Forbidden") || strings.Contains(o.Error, "secret") {
		t.Errorf("outcome %+v, want that the proxy refuses", o)
	}
	if asked := f.was(); !strings.HasPrefix(asked, "CONNECT 192.0.2.1:"+port) {
		t.Errorf("the proxy was asked %q", asked)
	}
	f.refuses.Store(false)
	// Exceptions are called directly, this machine among them.
	if o := send(t, through(), delivery(server.URL)); o.Verdict != notify.VerdictDelivered || f.was() != "" {
		t.Errorf("outcome %+v", o)
	}
	s := through(func(o *webhook.Options) { o.Proxy.Except = "hooks.invalid" })
	if o := send(t, s, delivery("https://hooks.invalid:"+port)); o.Verdict != notify.VerdictRetry || f.was() != "" {
		t.Errorf("outcome %+v, want that the proxy is not asked", o)
	}
	for _, bad := range []string{"proxy:3128", "socks5://proxy:1080", "http://", "http://proxy/path"} {
		if _, err := webhook.New(webhook.Options{Now: time.Now, Proxy: webhook.Proxy{URL: bad}}); err == nil || !strings.Contains(err.Error(), "TOCSIN_OUTGOING_PROXY") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestATunnelCarriesTheCall sends through a proxy that connects to the receiver, whatever address
// is requested.
func TestATunnelCarriesTheCall(t *testing.T) {
	server, _ := secure(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto+" "+r.Host) }, func(server *httptest.Server) { server.EnableHTTP2 = true })
	url := raw(t, func(conn net.Conn) {
		in := bufio.NewReader(conn)
		if _, err := http.ReadRequest(in); err != nil {
			return
		}
		var dialer net.Dialer
		target, err := dialer.DialContext(context.WithoutCancel(t.Context()), "tcp", server.Listener.Addr().String())
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		done := make(chan struct{})
		go func() { _, _ = io.Copy(conn, target); _ = conn.Close(); close(done) }()
		_, _ = io.Copy(target, in)
		_ = target.Close()
		<-done
	})
	s := newSender(t, func(o *webhook.Options) {
		o.RootCAs, o.Proxy = rootsOf(server), webhook.Proxy{URL: url, Resolves: true}
	})
	// The certificate of httptest is valid for this name.
	if o := send(t, s, delivery("https://example.com/hook")); o.Verdict != notify.VerdictDelivered || o.Response != "HTTP/2.0 example.com" {
		t.Errorf("outcome %+v", o)
	}
	s.Close()
}
