package terraform

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// underway is what an apply has done, does, and has yet to do, as its events tell.
type underway struct {
	left  map[string]int // operations that are planned and not done, by address
	begun map[string]operation
	done  int // addresses with no operation left
}

// operation is one that Terraform works on.
type operation struct {
	doing string
	since time.Time
}

// operations is how many events of an end a planned action has; actions that are
// not in it have none.
var operations = map[string]int{"create": 1, "update": 1, "delete": 1, "read": 1, "replace": 2}

// take adds an event that came at now.
func (u *underway) take(ev event, now time.Time) {
	if u.left == nil {
		u.left, u.begun = map[string]int{}, map[string]operation{}
	}
	addr := ev.Hook.Resource.Addr
	switch ev.Type {
	case "planned_change":
		if n := operations[ev.Change.Action]; n > 0 {
			u.left[ev.Change.Resource.Addr] = n
		}
	case "apply_start":
		u.begun[addr] = operation{ev.doing(), now}
	case "apply_complete":
		delete(u.begun, addr)
		if u.left[addr] > 0 {
			if u.left[addr]--; u.left[addr] == 0 {
				u.done++
			}
		}
	case "apply_errored":
		delete(u.begun, addr)
	}
}

// progress is the operation that takes longest, zero while there is none.
func (u *underway) progress() jobspec.Progress {
	if len(u.begun) == 0 {
		return jobspec.Progress{}
	}
	addr := slices.MinFunc(slices.Collect(maps.Keys(u.begun)), func(a, b string) int {
		return cmp.Or(u.begun[a].since.Compare(u.begun[b].since), cmp.Compare(a, b))
	})
	return jobspec.Progress{What: addr, Doing: u.begun[addr].doing, Since: u.begun[addr].since, Done: u.done, Total: len(u.left)}
}
