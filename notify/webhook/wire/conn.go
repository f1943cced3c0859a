package wire

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"time"

	"tocsin/internal/socket"
)

// conn is a connection. It belongs to the call that has taken it.
type conn struct {
	origin origin
	// socket is what was dialled, stream what is spoken over: that, or TLS over it.
	socket, stream net.Conn
	in             *bufio.Reader
	out            bytes.Buffer
	// left is how much may still be read, in bytes.
	left int64
	// sent counts the bytes that were handed to the network since the call began.
	sent int
	// reusable says that request and answer have come to their ends.
	reusable bool
	// dry says that nothing is read from the network.
	dry bool
	// round is that of the pool in which it became idle.
	round int
}

// Sizes of requests, in bytes.
const (
	// kept is the longest whose memory a connection keeps.
	kept = 8 << 10
	// beside is the longest that is written before the answer is read. A receiver may
	// answer a longer one without reading it.
	beside = 64 << 10
)

func newConn(o origin, socket net.Conn) *conn {
	c := &conn{origin: o, socket: socket}
	c.stream = counting{socket, c}
	c.in = bufio.NewReader(bounded{c})
	return c
}

// encrypt puts TLS between.
func (c *conn) encrypt(ctx context.Context, name string, o Options) error {
	config := o.TLS.Clone()
	config.ServerName, config.NextProtos = name, []string{"http/1.1"}
	secure := tls.Client(c.stream, config)
	c.stream = secure
	ctx, cancel := context.WithTimeout(ctx, o.HandshakeTimeout)
	defer cancel()
	err := secure.HandshakeContext(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("not done within %v", o.HandshakeTimeout)
	}
	return err
}

// interrupt ends all waiting for the network, for good.
func (c *conn) interrupt() { _ = c.socket.SetDeadline(time.Unix(1, 0)) }

// exchange writes a request and reads the answer.
func (c *conn) exchange(r *http.Request, limit int64, o Options) (Answer, error) {
	c.sent, c.reusable = 0, false
	if err := r.Write(&c.out); err != nil {
		return Answer{}, fmt.Errorf("write the request: %w", err)
	}
	var wrote func() error
	if c.out.Len() <= beside {
		err := c.write()
		wrote = func() error { return err }
	} else {
		wrote = c.writeBeside()
	}
	// Whoever does not read the request may have answered it.
	a, ended, err := c.read(r, limit, o)
	writeErr := wrote()
	c.reusable = err == nil && writeErr == nil && ended
	if c.out.Reset(); c.out.Cap() > kept {
		c.out = bytes.Buffer{}
	}
	switch {
	case err == nil:
		return a, nil
	case writeErr != nil && !errors.Is(writeErr, errAnswered):
		return a, fmt.Errorf("send the request: %w", writeErr)
	case errors.Is(err, errNoAnswer):
		return a, err
	}
	return a, fmt.Errorf("read the answer: %w", err)
}

// write writes what was put together.
func (c *conn) write() error {
	_, err := c.stream.Write(c.out.Bytes())
	return err
}

// errAnswered is the error of a write that was still going on when the answer was there.
var errAnswered = errors.New("answered before all was written")

// writeBeside writes beside the reading. The function that it returns ends that.
func (c *conn) writeBeside() func() error {
	done := make(chan error, 1)
	go func() { done <- c.write() }()
	return func() error {
		select {
		case err := <-done:
			return err
		default:
			c.interrupt()
			return errors.Join(errAnswered, <-done)
		}
	}
}

// read reads an answer. Ended says that nothing of it is left on the connection, and
// that another may follow.
func (c *conn) read(r *http.Request, limit int64, o Options) (a Answer, ended bool, err error) {
	if a.Head, err = c.head(r, o.MaxHead); err != nil { //nolint:bodyclose // to close it would be to read all of it
		return a, false, err
	}
	body := a.Head.Body
	a.Head.Body = http.NoBody
	switch {
	case a.Head.StatusCode == http.StatusSwitchingProtocols:
		return a, false, nil
	case a.Head.ContentLength != 0:
		var short error
		a.Body, short = io.ReadAll(io.LimitReader(body, limit))
		_, err := io.CopyN(io.Discard, body, o.MaxDrain)
		ended = short == nil && errors.Is(err, io.EOF)
	default:
		ended = true
	}
	return a, ended && !a.Head.Close && c.in.Buffered() == 0, nil
}

// head reads the head of an answer. What comes before the answer is none.
func (c *conn) head(r *http.Request, limit int64) (*http.Response, error) {
	c.left = limit
	defer func() { c.left = math.MaxInt64 }()
	for {
		head, err := http.ReadResponse(c.in, r)
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF) && c.left == limit:
			return nil, errNoAnswer
		case err != nil:
			return nil, err
		}
		if head.StatusCode >= http.StatusOK || head.StatusCode == http.StatusSwitchingProtocols {
			return head, nil
		}
	}
}

// counting counts what is handed to the network.
type counting struct {
	net.Conn

	conn *conn
}

func (c counting) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.conn.sent += n
	return n, err
}

// Read reads nothing while the connection is dry, with an error that TLS takes for
// one that passes.
func (c counting) Read(p []byte) (int, error) {
	if c.conn.dry {
		return 0, os.ErrDeadlineExceeded
	}
	return c.Conn.Read(p)
}

// isQuiet reports that an idle connection stands and has nothing to read: neither on
// the socket, nor in what TLS has read of it beyond the last answer.
func (c *conn) isQuiet() bool {
	c.dry = true
	_, err := c.in.Peek(1)
	c.dry = false
	return errors.Is(err, os.ErrDeadlineExceeded) && socket.IsQuiet(c.socket)
}

// close closes it at once: to end TLS in good order means to write, and so perhaps to
// wait.
func (c *conn) close() { _ = c.socket.Close() }

// errNoAnswer is the error of a call of whose answer not a byte came.
var errNoAnswer = errors.New("the receiver ended the connection without an answer")

// errHead is the error of an answer whose head is too long.
var errHead = errors.New("the head of the answer is too long")

// bounded reads what may be read.
type bounded struct{ conn *conn }

func (b bounded) Read(p []byte) (int, error) {
	if b.conn.left <= 0 {
		return 0, errHead
	}
	n, err := b.conn.stream.Read(p[:min(int64(len(p)), b.conn.left)])
	b.conn.left -= int64(n)
	return n, err
}
