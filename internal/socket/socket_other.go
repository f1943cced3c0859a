//go:build !unix

package socket

// nothingToRead cannot be known here.
func nothingToRead(uintptr) bool { return false }
