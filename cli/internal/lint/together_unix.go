//go:build unix

package lint

import (
	"os/exec"
	"syscall"
)

// together gives a check a process group of its own, so that its children end
// with it.
func together(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
