//go:build unix

package proc

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Terminal returns file if it is the controlling terminal and devstack is in its foreground,
// otherwise nil. A child may then take over the terminal, so that it can read from it and gets
// Ctrl-C itself.
func Terminal(file *os.File) *os.File {
	group, err := unix.IoctlGetInt(int(file.Fd()), unix.TIOCGPGRP)
	if err != nil || group != unix.Getpgrp() {
		return nil
	}
	return file
}

// reclaim makes devstack's own group the foreground of the terminal again. SIGTTOU stops a
// background process that does so, unless it ignores the signal.
func reclaim(terminal *os.File) {
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCSPGRP, unix.Getpgrp())
}
