//go:build !linux

package terraform

import "syscall"

// diesWithParent is for Linux only.
func diesWithParent(*syscall.SysProcAttr) {}
