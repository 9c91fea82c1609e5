package process

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/berth-dev/berth/pkg/procstat"
)

// Alive reports whether the process still runs: the same number, begun at the
// same moment of the same boot, and not merely waiting to be reaped.
func Alive(id ID) bool {
	if id.PID <= 0 || id.BootID != bootID() {
		return false
	}
	start, err := procstat.StartTime(id.PID)
	return err == nil && start == id.StartTime
}

// Find looks for the process that was started with exactly these arguments
// after the name of its executable. It serves the moment between the start of
// an engine and its being on record.
func Find(args ...string) (id ID, found bool) {
	entries, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return ID{}, false
	}
	for _, path := range entries {
		raw, err := os.ReadFile(path)
		if err != nil || len(raw) == 0 {
			continue
		}
		fields := strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00")
		if len(fields) == 0 || !slices.Equal(fields[1:], args) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			continue
		}
		if start, err := procstat.StartTime(pid); err == nil {
			return ID{PID: pid, StartTime: start, BootID: bootID()}, true
		}
	}
	return ID{}, false
}

var bootID = sync.OnceValue(func() string {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(raw))
})
