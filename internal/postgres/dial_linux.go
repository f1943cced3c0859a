package postgres

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// newDialer returns a dialer whose connections end when the server has not acknowledged anything for a time. If its
// machine is gone, nothing else ends them: Linux sends what was sent last for some 15 minutes again, and work without a
// deadline of its own would wait for that. See TCP_USER_TIMEOUT in tcp(7) and in RFC 5482.
func newDialer(unacknowledged time.Duration) *net.Dialer {
	return &net.Dialer{Control: func(network, _ string, conn syscall.RawConn) (err error) {
		if network != "tcp4" && network != "tcp6" {
			return nil // a socket in the file system
		}
		if failed := conn.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unacknowledged.Milliseconds()))
		}); failed != nil {
			return failed
		}
		return err
	}}
}
