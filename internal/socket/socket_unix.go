//go:build unix

package socket

import (
	"errors"
	"syscall"
)

// nothingToRead reports whether a read would wait.
func nothingToRead(fd uintptr) bool {
	var first [1]byte
	_, _, err := syscall.Recvfrom(int(fd), first[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EWOULDBLOCK)
}
