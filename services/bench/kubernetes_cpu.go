package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor time in /proc, which Linux keeps at 1/100 s.
const tick = 10 * time.Millisecond

// processor is the time that all processes of the system have had on a
// processor until now, those that have ended included; 0 where there is no
// /proc. Waiting is not in it, so it says something on a busy machine as well.
func (s *system) processor() time.Duration { return s.processorOf(s.owns) }

// processorOf is the same for the processes that are ours, and for all that come from them.
func (s *system) processorOf(ours func(proc string) bool) time.Duration {
	all := map[int]processStat{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue // it has just ended
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if stat, ok := parseStat(string(raw)); ok {
			stat.ours = ours(filepath.Dir(file))
			all[pid] = stat
		}
	}
	var total time.Duration
	for pid := range all {
		if underOurs(all, pid) {
			total += all[pid].took
		}
	}
	return total
}

// owns tells whether a process names the system's folder.
func (s *system) owns(proc string) bool {
	for _, file := range []string{"cmdline", "environ"} {
		if raw, err := os.ReadFile(filepath.Join(proc, file)); err == nil && bytes.Contains(raw, []byte(s.dir)) {
			return true
		}
	}
	return false
}

// processStat is what is of interest in /proc/PID/stat.
type processStat struct {
	parent int
	took   time.Duration // with its children that have ended
	ours   bool
}

func parseStat(text string) (processStat, bool) {
	// The name, in parentheses, may have anything in it.
	_, after, found := strings.Cut(text[strings.LastIndex(text, ")")+1:], " ")
	fields := strings.Fields(after)
	// From here on, state is 0, the parent 1, and utime, stime and those of the
	// children that have ended are 11 to 14.
	if !found || len(fields) < 15 {
		return processStat{}, false
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return processStat{}, false
	}
	stat := processStat{parent: parent}
	for _, field := range fields[11:15] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return processStat{}, false
		}
		stat.took += time.Duration(ticks) * tick
	}
	return stat, true
}

// underOurs tells whether a process or one that it comes from is ours: Postgres
// writes over what would tell it of its processes.
func underOurs(all map[int]processStat, pid int) bool {
	for range len(all) { // parents may change while they are read, into a circle even
		stat, ok := all[pid]
		if !ok {
			return false
		}
		if stat.ours {
			return true
		}
		pid = stat.parent
	}
	return false
}
