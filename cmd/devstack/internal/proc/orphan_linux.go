package proc

import "syscall"

func signalWhenOrphaned(attr *syscall.SysProcAttr, sig syscall.Signal) {
	attr.Pdeathsig = sig
}
