package conformance

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// killTree ends a process and all that it started, as the end of a process
// namespace does. The process stands still while its children are looked for.
func killTree(pid int) {
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	for _, child := range children(pid) {
		killTree(child)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// children are the processes that a process started and that still live, by
// /proc/PID/stat (proc(5)); none where there is no /proc.
func children(of int) []int {
	var all []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is a good one
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// The name stands in brackets and may hold any character.
		i := bytes.LastIndexByte(raw, ')')
		fields := bytes.Fields(raw[max(i, 0):])
		if len(fields) < 3 || string(fields[2]) != strconv.Itoa(of) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			all = append(all, pid)
		}
	}
	return all
}
