// Package netport finds free TCP ports on loopback.
package netport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"
)

// The range lies below those from which Linux and macOS take the local ports of outgoing connections: a server can come
// back on its port although the machine is busy.
const (
	lowest  = 20000
	highest = 32000
)

const attempts = 200

// Free returns the preferred port if it can be listened on, else another one. 0 prefers none. Somebody may take the port
// before the caller does.
func Free(preferred int) (int, error) {
	if preferred != 0 && Available(preferred) == nil {
		return preferred, nil
	}
	var last error
	for range attempts {
		port := lowest + rand.IntN(highest-lowest)
		if last = Available(port); last == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port from %d to %d: %w", lowest, highest, last)
}

// Available says why a port cannot be listened on, or nil. Taken tells the usual reason.
func Available(port int) error {
	listener, err := Listen(port)
	if err != nil {
		return err
	}
	return listener.Close()
}

// Listen listens on a port of 127.0.0.1.
func Listen(port int) (net.Listener, error) {
	return net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
}

// Taken says whether err means that somebody else listens on the port.
func Taken(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE)
}
