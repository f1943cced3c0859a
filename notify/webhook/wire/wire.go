// Package wire posts over HTTP/1.1.
//
// A call owns its connection from its first byte to its last: it takes one that is
// idle, or dials, writes the request, reads the answer, and puts the connection back
// when both were read to their ends. Nobody else writes to it or reads from it
// meanwhile, and no goroutine stands between. So three things hold that a transport
// which shares connections cannot promise. Whether any byte of a request left the
// process is known, not guessed. A request is never sent a second time, whatever
// befalls its connection. And a call that has ended, or was given up, leaves nothing
// behind that still reads or writes.
//
// An idle connection is looked at before it is used: one that the receiver has
// closed, or on which it has said something unasked, is closed, and another one taken.
// Where it is closed at the very moment at which the request is sent, nobody knows
// whether the request was read, and the caller is told that it was sent.
//
// Requests are written and answers are read by net/http. HTTP/2, which a server may
// offer but has to do without, is not spoken.
package wire

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/idna"
)

// Options configure a [Client]. All of them are required but TLS.
type Options struct {
	// Dial opens a connection. Where it may lead is for it to judge.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS is for https; nil stands for the defaults. The server's name is that of the URL.
	TLS *tls.Config
	// HandshakeTimeout bounds the handshake of TLS.
	HandshakeTimeout time.Duration
	// MaxHead bounds the head of an answer with all that precedes it, in bytes.
	MaxHead int64
	// MaxDrain bounds what is read of an answer beyond what was asked for, in bytes, so
	// that its connection can be used again.
	MaxDrain int64
	// MaxIdle and MaxIdlePerHost bound how many connections wait for their next use.
	MaxIdle, MaxIdlePerHost int
	// IdleFor is how long a connection waits for its next use: at least that, at most
	// twice as long.
	IdleFor time.Duration
}

// Client makes calls. It is safe for concurrent use.
type Client struct {
	options Options
	idle    pool
}

// New returns a client. [Client.Close] releases its connections.
func New(o Options) *Client {
	if o.TLS == nil {
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return &Client{options: o, idle: pool{most: o.MaxIdle, mostPerHost: o.MaxIdlePerHost, lasts: o.IdleFor}}
}

// Close closes the connections that wait for their next use. Those in use are
// closed when their calls end.
func (c *Client) Close() { c.idle.close() }

// Answer is what came back.
type Answer struct {
	// Head is the status and the headers. There is nothing more to read in it.
	Head *http.Response
	// Body is the beginning of the body.
	Body []byte
}

// Call sends a request and reads the head of the answer and at most limit bytes of
// its body. It ends with the context at the latest.
//
// What befalls the body of an answer is no error; what was read of it is returned.
// A call that the context ends has the context's error.
// Of a call without answer it is told whether nothing was sent: no byte of the
// request was handed to the network.
func (c *Client) Call(ctx context.Context, r *http.Request, limit int64) (a Answer, nothingSent bool, err error) {
	if err := check(r.Header); err != nil {
		return a, true, err
	}
	used, err := c.take(ctx, r.URL)
	if err != nil {
		return a, true, ended(ctx, err)
	}
	// Whoever waits for the network is woken when the context ends.
	stop := context.AfterFunc(ctx, used.interrupt)
	a, err = used.exchange(r, limit, c.options)
	nothingSent = used.sent == 0
	if stop() && used.reusable {
		c.idle.put(used)
	} else {
		used.close()
	}
	return a, nothingSent, ended(ctx, err)
}

// ended returns the error of the context where there is one: it is why the call failed.
func ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// take returns a connection: one that is idle, failing that a new one.
func (c *Client) take(ctx context.Context, to *url.URL) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	origin := origin{to.Scheme, to.Host}
	if idle := c.idle.take(origin); idle != nil {
		return idle, nil
	}
	name, address, err := addressOf(to)
	if err != nil {
		return nil, err
	}
	socket, err := c.options.Dial(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	made := newConn(origin, socket)
	if to.Scheme == "https" {
		if err := made.encrypt(ctx, name, c.options); err != nil {
			_ = socket.Close()
			return nil, fmt.Errorf("TLS handshake: %w", err)
		}
	}
	return made, nil
}

// addressOf returns the name of a URL's host in ASCII, and where to dial.
func addressOf(u *url.URL) (name, address string, err error) {
	name, port := u.Hostname(), u.Port()
	if port == "" {
		port = "80"
		if u.Scheme == "https" {
			port = "443"
		}
	}
	if !isASCII(name) {
		if name, err = idna.Lookup.ToASCII(name); err != nil {
			return "", "", fmt.Errorf("the name of the host: %w", err)
		}
	}
	return name, net.JoinHostPort(name, port), nil
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}

// check refuses what would be written as something else than it is.
func check(header http.Header) error {
	for name, values := range header {
		if !httpguts.ValidHeaderFieldName(name) {
			return fmt.Errorf("the name of the header %q is not valid", name)
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldValue(value) {
				return fmt.Errorf("the value of the header %q is not valid", name) // which may be a secret
			}
		}
	}
	return nil
}
