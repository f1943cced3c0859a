//go:build unix && !linux

package proc

import "syscall"

func signalWhenOrphaned(*syscall.SysProcAttr, syscall.Signal) {}
