package step

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Name is what the executable is called in the place of runc, and File is next to
// it.
const (
	Name = "berth-runc"
	File = "limits.json"
)

// Limits are those of each step. They are what the agent found out when it started
// the daemon.
type Limits struct {
	// Runc is the real one.
	Runc string `json:"runc"`
	// Memory in bytes, and how many processes and threads.
	Memory int64 `json:"memory"`
	PIDs   int64 `json:"pids"`
	// FileBytes is the largest file that a step may write.
	FileBytes int64 `json:"file_bytes"`
	// Groups are directories of control groups in which the daemon's user may make
	// others; what none of them limits is limited for each process.
	Groups []Group `json:"groups,omitempty"`
}

// Group is a directory of a hierarchy of control groups.
type Group struct {
	Dir string `json:"dir"`
	// Memory and PIDs are the files of the limits that this hierarchy has, "" for none.
	Memory string `json:"memory,omitempty"`
	PIDs   string `json:"pids,omitempty"`
}

// limitsMemory and limitsPIDs tell whether a group does.
func (l Limits) limitsMemory() bool { return l.any(func(g Group) bool { return g.Memory != "" }) }
func (l Limits) limitsPIDs() bool   { return l.any(func(g Group) bool { return g.PIDs != "" }) }

func (l Limits) any(is func(Group) bool) bool {
	for _, g := range l.Groups {
		if is(g) {
			return true
		}
	}
	return false
}

// Held says in words what holds for a step.
func (l Limits) Held() string {
	memory, pids := "for each process", "over all steps"
	if l.limitsMemory() {
		memory = "for each step"
	}
	if l.limitsPIDs() {
		pids = "for each step"
	}
	return fmt.Sprintf("memory %s %s, %d processes %s", Size(l.Memory), memory, l.PIDs, pids)
}

// perProcess are the limits that a step's processes carry themselves. RLIMIT_DATA
// is what a process has of its own and may write to; address space that is only
// reserved does not count.
func (l Limits) perProcess() map[int]uint64 {
	set := map[int]uint64{unix.RLIMIT_CORE: 0}
	if l.FileBytes > 0 {
		set[unix.RLIMIT_FSIZE] = uint64(l.FileBytes)
	}
	if !l.limitsMemory() && l.Memory > 0 {
		set[unix.RLIMIT_DATA] = uint64(l.Memory)
	}
	if !l.limitsPIDs() && l.PIDs > 0 {
		set[unix.RLIMIT_NPROC] = uint64(l.PIDs)
	}
	return set
}

// Usage is what the control groups of a step counted by its end.
type Usage struct {
	// MemoryHits is how often it met its limit of memory, PeakPIDs the most processes
	// at a time.
	MemoryHits, PeakPIDs int64
}

// Reason says which limit a step met that failed with this exit code, "" when none
// is known.
func (l Limits) Reason(code int, used Usage) string {
	switch {
	case code == 0:
		return ""
	case used.PeakPIDs >= l.PIDs && l.limitsPIDs():
		return fmt.Sprintf("this step reached its limit of %d processes and threads (BERTH_BUILD_PIDS of the builder)", l.PIDs)
	case used.MemoryHits > 0:
		return fmt.Sprintf("this step reached its limit of %s of memory (BERTH_BUILD_MEMORY of the builder)", Size(l.Memory))
	case !l.limitsMemory() || !l.limitsPIDs():
		return "this step failed under the limits of this builder: " + l.Held() + " (BERTH_BUILD_MEMORY, BERTH_BUILD_PIDS)"
	}
	return ""
}

// Size is a number of bytes in words.
func Size(n int64) string {
	for _, unit := range []struct {
		bytes int64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.bytes {
			return strconv.FormatFloat(float64(n)/float64(unit.bytes), 'g', 4, 64) + " " + unit.name
		}
	}
	return strconv.FormatInt(n, 10) + " B"
}

// of makes the groups of one step.
func (l Limits) of(id string) (dirs []string, err error) {
	for _, g := range l.Groups {
		dir := filepath.Join(g.Dir, "step-"+id)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return dirs, err
		}
		dirs = append(dirs, dir)
		for file, value := range map[string]int64{g.Memory: l.Memory, g.PIDs: l.PIDs} {
			if file == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, file), []byte(strconv.FormatInt(value, 10)), 0); err != nil {
				return dirs, err
			}
		}
	}
	return dirs, nil
}

// used reads what the groups counted.
func used(dirs []string) (u Usage) {
	for _, dir := range dirs {
		u.PeakPIDs = max(u.PeakPIDs, number(filepath.Join(dir, "pids.peak"), ""))
		u.MemoryHits = max(u.MemoryHits, number(filepath.Join(dir, "memory.failcnt"), ""), number(filepath.Join(dir, "memory.events"), "oom_kill "))
	}
	return u
}

// number reads a file of one number, or its line that begins so.
func number(file, begins string) int64 {
	raw, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), begins); ok {
			n, _ := strconv.ParseInt(rest, 10, 64)
			return n
		}
	}
	return 0
}

func read(file string) (l Limits, err error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return l, err
	}
	return l, json.Unmarshal(raw, &l)
}
