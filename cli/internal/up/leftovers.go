package up

import (
	"cmp"
	"slices"
	"syscall"
	"time"
)

// leftoverGrace is how long a process that nobody knows gets to stop.
const leftoverGrace = 10 * time.Second

// A leftover is a process of this data folder without a supervisor.
type leftover struct {
	Process
	name string
}

// Ended is a process that was stopped.
type Ended struct {
	Name   string
	PID    int
	Killed bool // it did not stop when asked
}

// recorded are the processes of state.json that run, those that stop first
// first.
func recorded(s State) []leftover {
	type row struct {
		leftover
		order int
	}
	var rows []row
	for name, part := range s.Parts {
		if part.Running() {
			rows = append(rows, row{leftover{Process: part.Process, name: name}, part.Order})
		}
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.order, a.order), cmp.Compare(a.name, b.name))
	})
	found := make([]leftover, len(rows))
	for i, r := range rows {
		found[i] = r.leftover
	}
	return found
}

// politeSignal is what asks a part to stop.
func politeSignal(name string) syscall.Signal {
	if name == postgresPart {
		return syscall.SIGINT
	}
	return syscall.SIGTERM
}

func (l leftover) stop() Ended {
	grace := leftoverGrace
	if l.name == postgresPart {
		grace = postgresGrace
	}
	return Ended{Name: l.name, PID: l.PID, Killed: l.end(politeSignal(l.name), grace)}
}

// endStrays ends what carries the mark of the data folder and is none of the
// processes to spare.
func endStrays(l Layout, spare func(pid int) bool) []Ended {
	var ended []Ended
	for _, stray := range carrying(l) {
		if !spare(stray.PID) && stray.Running() {
			ended = append(ended, stray.stop())
		}
	}
	return ended
}
