//go:build !linux

package postgres

import (
	"net"
	"time"
)

// newDialer returns a dialer. Only Linux can end connections that the server does not acknowledge.
func newDialer(time.Duration) *net.Dialer { return &net.Dialer{} }
