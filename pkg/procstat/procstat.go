// Package procstat reads what the kernel says of a process (proc(5)): when it
// began, which tells it from a later one with the same id, and whether it has
// ended. Linux only.
package procstat

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// ErrEnded says that nothing of the process runs any more; at most its parent has not
// noticed yet.
var ErrEnded = errors.New("process has ended")

// StartTime is when a process began, in clock ticks since boot. It returns
// ErrEnded for a zombie, and os.ErrNotExist for a process that is not there.
func StartTime(pid int) (ticks uint64, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return startTime(stat)
}

// startTime reads it from the contents of /proc/PID/stat.
func startTime(stat []byte) (ticks uint64, err error) {
	// The name, in parentheses, may hold anything; the fields after it are
	// numbered from 3.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const state, threads, start = 0, 20 - 3, 22 - 3
	if len(fields) <= start {
		return 0, errors.New("unexpected entry in /proc")
	}
	// The state is that of the first thread. While others are left, the process
	// works, and has its files and ports.
	if fields[state][0] == 'X' || fields[state][0] == 'Z' && string(fields[threads]) == "1" {
		return 0, ErrEnded
	}
	return strconv.ParseUint(string(fields[start]), 10, 64)
}
