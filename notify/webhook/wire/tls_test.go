package wire_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tocsin/notify/webhook/wire"
)

// corked holds back what is written, so that some records of TLS arrive together.
type corked struct {
	net.Conn

	corked bool
	held   bytes.Buffer
}

func (c *corked) Write(p []byte) (int, error) {
	if c.corked {
		return c.held.Write(p)
	}
	return c.Conn.Write(p)
}

// SetWriteDeadline does nothing: whoever says the end over TLS may not write afterwards.
func (c *corked) SetWriteDeadline(time.Time) error { return nil }

// pop writes at once what is held back.
func (c *corked) pop() error {
	c.corked = false
	_, err := c.held.WriteTo(c.Conn)
	return err
}

// certified returns a certificate for 127.0.0.1, and who vouches for it.
func certified(t *testing.T) ([]tls.Certificate, *x509.CertPool) {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return server.TLS.Certificates, roots
}

// What came over TLS together with an answer has left the socket. It is no answer to
// the next call, nor does its connection serve one.
func TestIdleConnectionsAreLookedAtBeneathTLS(t *testing.T) {
	const answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
	for name, c := range map[string]struct {
		said  string
		after func(*tls.Conn) error
		again bool
	}{
		"nothing more": {answer + "ok", func(*tls.Conn) error { return nil }, true},
		"an answer unasked": {answer + "ok", func(s *tls.Conn) error {
			_, err := io.WriteString(s, answer+"no")
			return err
		}, false},
		"the end":                   {answer + "ok", (*tls.Conn).CloseWrite, false},
		"the end amidst the answer": {answer + "o", (*tls.Conn).CloseWrite, false},
	} {
		t.Run(name, func(t *testing.T) {
			certificates, roots := certified(t)
			var dialled atomic.Int32
			done := make(chan struct{})
			to := accept(t, func(conn net.Conn) {
				cork := &corked{Conn: conn}
				secure := tls.Server(cork, &tls.Config{Certificates: certificates, MinVersion: tls.VersionTLS12})
				r := bufio.NewReader(secure)
				for readRequest(r) == nil {
					if dialled.Load() > 1 {
						_, _ = io.WriteString(secure, answer+"ok")
						continue
					}
					cork.corked = true
					_, _ = io.WriteString(secure, c.said)
					if err := c.after(secure); err != nil {
						t.Error(err)
					}
					if err := cork.pop(); err != nil {
						t.Error(err)
					}
					if !c.again {
						<-done // not answered again, and not closed
					}
				}
			})
			client := newClient(t, counted(&dialled), func(o *wire.Options) { o.TLS = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12} })
			t.Cleanup(func() { close(done); client.Close() })
			for range 2 {
				a, _, err := call(t, client, request(t, strings.Replace(to, "http:", "https:", 1), "x"))
				if err != nil || a.Head.StatusCode != http.StatusOK || !strings.HasPrefix("ok", string(a.Body)) {
					t.Errorf("the answer is %q, %v", a.Body, err)
				}
			}
			if again := dialled.Load() == 1; again != c.again {
				t.Errorf("%d connections", dialled.Load())
			}
		})
	}
}

func TestNoAnswer(t *testing.T) {
	for said, want := range map[string]string{"": "the receiver ended the connection without an answer", "HTTP/1.1 200 OK\r\n": "read the answer: unexpected EOF"} {
		to := accept(t, func(conn net.Conn) {
			if readRequest(bufio.NewReader(conn)) == nil {
				_, _ = io.WriteString(conn, said)
			}
		})
		if _, nothingSent, err := call(t, newClient(t), request(t, to, "x")); nothingSent || err == nil || err.Error() != want {
			t.Errorf("after %q: %v, nothing sent %v; want %q", said, err, nothingSent, want)
		}
	}
}
