package buildkit

import (
	"os/exec"
	"syscall"
)

// dieWithParent ends a build whose engine is killed: BuildKit cancels what nobody
// waits for.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
