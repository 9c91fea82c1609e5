package action

import "syscall"

// groupAttr gives a script a process group of its own; it does not outlive the
// engine.
func groupAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
