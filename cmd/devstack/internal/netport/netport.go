// Package netport finds free TCP ports on loopback.
package netport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"
)

// The range is below those from which Linux and macOS take the local ports of outgoing connections.
// So a server can use its port again even on a busy machine.
const (
	lowest  = 20000
	highest = 32000
)

const attempts = 200

// Free returns the preferred port if it can be listened on, otherwise another one. 0 means no
// preference. Another process may take the port before the caller does.
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

// Available returns why a port cannot be listened on, or nil. Taken recognises the usual reason.
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

// Taken reports whether err means that another process listens on the port.
func Taken(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE)
}
