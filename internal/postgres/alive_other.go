//go:build !unix

package postgres

// nothingToRead is not known here.
func nothingToRead(uintptr) bool { return false }
