package webhook

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"

	"tocsin/notify"
)

// idleFor is how long a connection may be idle before it is used again. Many servers close idle
// connections after five seconds, and a request that is sent at that moment has an unknown result.
const idleFor = 4 * time.Second

// bodyWait bounds how long the body of an answer is read after its head has arrived, if the status
// says what became of the message.
const bodyWait = time.Second

// newTransport returns a transport that never sends a request twice: no request has a GetBody,
// without which net/http does not repeat a POST.
func newTransport(d *dialer, config *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext: d.dial, TLSClientConfig: config, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
		DisableCompression: true, MaxIdleConns: 1024, MaxIdleConnsPerHost: 256, IdleConnTimeout: idleFor,
		MaxResponseHeaderBytes: maxResponseHeader,
		// An HTTP/2 connection carries all calls to a host, so a dead one must be detected.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 5 * time.Second, WriteByteTimeout: 10 * time.Second},
	}
}

// reading says how much of the body of an answer is read, and for how long, depending on the
// status.
type reading struct {
	limit int64
	wait  func(status int) time.Duration
}

// call sends a request and reads the head of the answer, and its body as far as it arrives in time;
// an incomplete body is no error. If there was no answer, call reports whether nothing was sent:
// then the receiver cannot have the message. If ctx ends because a claim is lost, call still waits
// for the answer to a request that was sent.
func call(parent context.Context, transport http.RoundTripper, r *http.Request, most reading) (head *http.Response, body []byte, nothingSent bool, err error) {
	if err := checkHeader(r.Header); err != nil {
		return nil, nil, true, err
	}
	ctx, cancel := detach(parent)
	defer cancel()
	var sent sending
	stop := context.AfterFunc(parent, func() {
		if !errors.Is(context.Cause(parent), notify.ErrFenced) || !sent.any() {
			cancel()
		}
	})
	defer stop()
	head, err = transport.RoundTrip(r.WithContext(httptrace.WithClientTrace(ctx, sent.trace())))
	if err != nil {
		if why := cmp.Or(parent.Err(), ctx.Err()); why != nil {
			err = why
		}
		return nil, nil, !sent.any(), err
	}
	if head.StatusCode == http.StatusSwitchingProtocols {
		_ = head.Body.Close()
		return head, nil, false, nil
	}
	wait := most.wait(head.StatusCode)
	over := time.AfterFunc(wait, cancel)
	defer over.Stop()
	body, _ = io.ReadAll(io.LimitReader(head.Body, most.limit))
	if wait > bodyWait {
		over.Reset(bodyWait)
	}
	// A body that was read to its end leaves a connection that can be used again.
	_, _ = io.CopyN(io.Discard, head.Body, maxDrain)
	_ = head.Body.Close()
	return head, body, false, nil
}

// detach returns a context that ends at the deadline of its parent, but not if the parent is
// cancelled.
func detach(parent context.Context) (context.Context, context.CancelFunc) {
	if deadline, bounded := parent.Deadline(); bounded {
		return context.WithDeadline(context.WithoutCancel(parent), deadline)
	}
	return context.WithCancel(context.WithoutCancel(parent))
}

// checkHeader refuses headers that cannot be sent. Its errors do not quote a value.
func checkHeader(header http.Header) error {
	for name, values := range header {
		if !httpguts.ValidHeaderFieldName(name) {
			return fmt.Errorf("the name of the header %q is not valid; correct it", name)
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldValue(value) {
				return fmt.Errorf("the value of the header %q is not valid; remove line breaks and other control characters", name)
			}
		}
	}
	return nil
}

// sending observes whether a part of a request was passed to the network. An HTTP/1.1 request has
// its own connection, whose bytes are counted. An HTTP/2 connection is shared: there, a request
// counts as sent when its head is about to be written.
type sending struct {
	mu   sync.Mutex
	conn *counted
	// before is how many bytes the connection had written when the request got it.
	before int64
	http2  bool
	// head says that the head of the request was written, possibly only into a buffer. earlier says
	// that something was sent on an earlier connection.
	head, earlier bool
}

func (s *sending) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.earlier = s.onConn()
			s.head, s.http2 = false, false
			conn := info.Conn
			if secure, ok := conn.(*tls.Conn); ok {
				s.http2 = secure.ConnectionState().NegotiatedProtocol == "h2"
				conn = secure.NetConn()
			}
			if s.conn, _ = conn.(*counted); s.conn != nil {
				s.before = s.conn.written.Load()
			}
		},
		WroteHeaderField: func(string, []string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.head = true
		},
	}
}

// any reports whether anything may have been sent.
func (s *sending) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.onConn()
}

func (s *sending) onConn() bool {
	switch {
	case s.earlier:
		return true
	case s.conn == nil || s.http2:
		return s.head
	default:
		return s.conn.written.Load() > s.before
	}
}

// counted counts the bytes that are passed to the network, before they are passed.
type counted struct {
	net.Conn

	written atomic.Int64
}

func (c *counted) Write(p []byte) (int, error) {
	c.written.Add(int64(len(p)))
	return c.Conn.Write(p)
}
