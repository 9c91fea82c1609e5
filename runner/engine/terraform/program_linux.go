package terraform

import "syscall"

// diesWithParent has a process killed when the engine dies: nobody would read what it
// says, and the next attempt must not meet it.
func diesWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
