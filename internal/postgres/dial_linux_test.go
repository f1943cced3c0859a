package postgres

import (
	"errors"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestAServerThatTakesNothingEndsTheConnection has a server take in nothing of what it is sent, like one whose machine is
// gone. Without the option, the write would wait for it without end.
func TestAServerThatTakesNothingEndsTheConnection(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // the test is over
	conn, err := newDialer(200*time.Millisecond).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // it has ended
	if err := conn.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = conn.Write(make([]byte, 1<<20))
	}
	if !errors.Is(err, unix.ETIMEDOUT) {
		t.Errorf("the write ends with: %v", err)
	}
}

// TestConnectionsOfAURLEnd has the dialer be that of every connection.
func TestConnectionsOfAURLEnd(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // the test is over
	config, err := parse("postgres://tocsin@" + listener.Addr().String() + "/tocsin")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := config.ConnConfig.DialFunc(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // the test is over
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var ms int
	if failed := raw.Control(func(fd uintptr) { ms, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT) }); failed != nil || err != nil {
		t.Fatal(failed, err)
	}
	if got := time.Duration(ms) * time.Millisecond; got != unacknowledged {
		t.Errorf("connections end after %v", got)
	}
}
