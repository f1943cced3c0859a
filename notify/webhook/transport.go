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

// idleFor is how long a connection waits for its next use at most. Many servers close
// theirs after five seconds, and who sends at that very moment never learns whether the
// message was read.
const idleFor = 4 * time.Second

// bodyWait bounds how long the body of an answer is read once its head is there, where the
// status says what became of the message.
const bodyWait = time.Second

// newTransport returns a transport that never sends a request again: no request has a
// GetBody, without which net/http repeats no POST.
func newTransport(d *dialer, config *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext: d.dial, TLSClientConfig: config, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
		DisableCompression: true, MaxIdleConns: 1024, MaxIdleConnsPerHost: 256, IdleConnTimeout: idleFor,
		MaxResponseHeaderBytes: maxResponseHeader,
		// A connection of HTTP/2 carries all calls of a host: one that is dead is to be noticed.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 5 * time.Second, WriteByteTimeout: 10 * time.Second},
	}
}

// reading says how much of the body of an answer is read, and for how long under a status.
type reading struct {
	limit int64
	wait  func(status int) time.Duration
}

// call sends a request and reads the head of the answer and its body, as far as it comes in
// time; what befalls the body is no error. Of a call without answer it says whether nothing
// was sent: then the receiver cannot have the message. Where ctx ends because a claim is lost, what was
// sent is waited for.
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
	// What is read to its end leaves a connection that can be used again.
	_, _ = io.CopyN(io.Discard, head.Body, maxDrain)
	_ = head.Body.Close()
	return head, body, false, nil
}

// detach returns a context that ends with the deadline of its parent, and not when that is cancelled.
func detach(parent context.Context) (context.Context, context.CancelFunc) {
	if deadline, bounded := parent.Deadline(); bounded {
		return context.WithDeadline(context.WithoutCancel(parent), deadline)
	}
	return context.WithCancel(context.WithoutCancel(parent))
}

// checkHeader refuses headers that cannot be sent, without repeating a value.
func checkHeader(header http.Header) error {
	for name, values := range header {
		if !httpguts.ValidHeaderFieldName(name) {
			return fmt.Errorf("the name of the header %q is not valid", name)
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldValue(value) {
				return fmt.Errorf("the value of the header %q is not valid", name)
			}
		}
	}
	return nil
}

// sending observes whether anything of a request was handed to the network. HTTP/1.1
// has a connection for itself, whose bytes are counted. One of HTTP/2 is shared: there
// the request counts as sent once its head is about to be written.
type sending struct {
	mu   sync.Mutex
	conn *counted
	// before is what the connection had written when it was taken.
	before int64
	http2  bool
	// head says that the head of the request was written, perhaps into a buffer only;
	// earlier that something was sent on a connection before this one.
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

// counted counts the bytes that are handed to the network, before they are.
type counted struct {
	net.Conn

	written atomic.Int64
}

func (c *counted) Write(p []byte) (int, error) {
	c.written.Add(int64(len(p)))
	return c.Conn.Write(p)
}
