//go:build unix

package proc

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Terminal returns file when it is the controlling terminal and devstack is in its foreground, else nil: a child may
// then take the terminal over, so that it can read from it and gets Ctrl-C itself.
func Terminal(file *os.File) *os.File {
	group, err := unix.IoctlGetInt(int(file.Fd()), unix.TIOCGPGRP)
	if err != nil || group != unix.Getpgrp() {
		return nil
	}
	return file
}

// reclaim makes devstack's own group the foreground of the terminal again. A process in the background is stopped by
// SIGTTOU when it does that, unless it ignores the signal.
func reclaim(terminal *os.File) {
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCSPGRP, unix.Getpgrp())
}
