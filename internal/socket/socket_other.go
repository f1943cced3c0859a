//go:build !unix

package socket

// nothingToRead is not known here.
func nothingToRead(uintptr) bool { return false }
