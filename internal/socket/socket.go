// Package socket looks at connections that are idle. Their other end may have closed
// them meanwhile, which shows on the socket before anything is sent.
package socket

import (
	"crypto/tls"
	"net"
	"syscall"
)

// IsQuiet reports whether a connection stands and has nothing to read: no end, no
// farewell, no notice. It reads nothing, and waits for nothing. Of what it does not
// know, a connection that is no socket or a system that is not Unix, it says no.
func IsQuiet(conn net.Conn) bool {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	quiet := false
	err = raw.Control(func(fd uintptr) { quiet = nothingToRead(fd) })
	return err == nil && quiet
}
