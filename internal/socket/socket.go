// Package socket checks idle connections. The other end may have closed them, which the socket
// shows before anything is sent.
package socket

import (
	"crypto/tls"
	"net"
	"syscall"
)

// IsQuiet reports whether a connection is open and has nothing to read: no end, no farewell, no
// notice. It reads nothing, and does not wait. It returns false if it cannot know, for a connection
// that is not a socket or a system that is not Unix.
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
