package up

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// downGrace is how long a supervisor may take to stop all its parts.
const downGrace = runnerGrace + postgresGrace + 30*time.Second

// Down ends everything of a data folder, by pid: the supervisor, which stops
// its parts in order, and then whatever is left. Each process that it ended is
// told to say. It is fine to call it when nothing runs.
func Down(l Layout, say func(Ended)) error {
	if !l.Exists() {
		return problem(nil, "set BERTH_DATA to the data folder, if it is elsewhere", "there is no data folder of Berth at %s", l.Dir)
	}
	var state State
	if _, err := readJSON(l.State(), &state); err != nil {
		return problem(err, "look into it and repair it, or delete it when nothing of this Berth runs any more", "%v", err)
	}
	before := recorded(state)
	if sup := state.Supervisor; sup != nil && sup.Running() {
		killed := sup.end(syscall.SIGTERM, downGrace)
		for _, p := range before {
			if !p.Running() {
				say(Ended{Name: p.name, PID: p.PID})
			}
		}
		say(Ended{Name: "supervisor", PID: sup.PID, Killed: killed})
	}
	lock, err := takeLock(l)
	if err != nil {
		return err
	}
	defer unlock(lock)
	for _, p := range before {
		if p.Running() {
			say(p.stop())
		}
	}
	for _, e := range endStrays(l, func(int) bool { return false }) {
		say(e)
	}
	ledger, err := openLedger(l.State())
	if err != nil {
		return err
	}
	return ledger.change(func(st *State) { st.Supervisor, st.Parts = nil, nil })
}

// StopOutdated stops a Berth that runs older executables than those on disk, so
// that a second `berth up` starts what was built in between. The data stays, and
// jobs that were running are planned again. It returns how the one stands that runs
// on.
func StopOutdated(ctx context.Context, l Layout, say func(string)) (Status, error) {
	status, err := AskStatus(ctx, l)
	if err != nil || !status.Running {
		return Status{}, nil //nolint:nilerr // the start says what is wrong
	}
	old := status.Outdated()
	if len(old) == 0 {
		return status, nil
	}
	say("newer executables than those that run are on disk, for " + strings.Join(old, ", ") + "; all of Berth is stopped and started again")
	var stopped []string
	err = Down(l, func(e Ended) { stopped = append(stopped, e.Name) })
	say("stopped " + strings.Join(stopped, ", ") + "; what was being done in installs continues with a new plan")
	return Status{}, err
}

// Purge deletes the data folder. Only folders with our marker are deleted, and
// only while nothing runs in them.
func Purge(l Layout) (deleted []string, err error) {
	var lock *os.File
	if l.Exists() {
		if lock, err = takeLock(l); err != nil {
			return nil, err
		}
		defer unlock(lock)
	}
	// Sockets may lie elsewhere, when the path of the folder is long.
	for _, dir := range slices.Compact([]string{l.Shared, l.Dir}) {
		if !marked(dir) {
			continue
		}
		// The marker goes last: what is half deleted is still ours.
		entries, readErr := os.ReadDir(dir)
		err = errors.Join(err, readErr)
		for _, entry := range entries {
			if entry.Name() != markerFile {
				err = errors.Join(err, os.RemoveAll(dir+string(os.PathSeparator)+entry.Name()))
			}
		}
		if err != nil {
			return deleted, onDisk(dir, err)
		}
		if err := os.RemoveAll(dir); err != nil {
			return deleted, onDisk(dir, err)
		}
		deleted = append(deleted, dir)
	}
	if len(deleted) > 0 {
		err = os.RemoveAll(l.Sockets)
	}
	return deleted, err
}
