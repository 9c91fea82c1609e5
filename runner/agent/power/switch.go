// Package power owns the customer's switch: the file that says how much the
// runner may do, above anything that the control plane asks for. The customer
// writes it with the runner's command line; the agent watches it. What each
// position allows is decided by the methods of Mode, and nowhere else.
//
// In a cluster there is a second switch, a ConfigMap, which the agent copies
// into a file of its own. The one that allows less counts.
package power

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/berth-dev/berth/runner/agent/datadir"
)

// Mode is a position of the switch. Each allows less than the one before.
type Mode string

// The positions.
const (
	// Run: work as asked.
	Run Mode = "run"
	// Pause: what runs ends, nothing new begins; health checks continue.
	Pause Mode = "pause"
	// ReadOnly: nothing that mutates begins; plans, drift and checks do.
	ReadOnly Mode = "read_only"
	// StopNow: engines stop at their next safe point, nothing begins.
	StopNow Mode = "stop_now"
	// Sever is StopNow, and nothing is sent or fetched either.
	Sever Mode = "sever"
)

// Modes are all positions.
func Modes() []Mode { return []Mode{Run, Pause, ReadOnly, StopNow, Sever} }

// State is the switch as it was set.
type State struct {
	Mode   Mode      `json:"mode"`
	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by,omitempty"` // the user of the command line
	At     time.Time `json:"at,omitzero"`
}

// Claims says whether new work may be asked for.
func (m Mode) Claims() bool { return m == Run || m == ReadOnly }

// Job says whether a job of the control plane may begin.
func (m Mode) Job(mutates bool) bool { return m == Run || m == ReadOnly && !mutates }

// Scheduled says whether a scheduled run may begin: in a pause only checks do.
func (m Mode) Scheduled(check, mutates bool) bool {
	return m == Run || m == ReadOnly && !mutates || m == Pause && check && !mutates
}

// Stops says whether engines that run are to stop.
func (m Mode) Stops() bool { return m == StopNow || m == Sever }

// Network says whether anything may be sent or fetched.
func (m Mode) Network() bool { return m != Sever }

// Load reads the switch: of the local one and the cluster's, that which allows
// less. Without a file it stands at Run. A file that cannot be understood stops
// everything: somebody wanted something, and less is safe.
func Load(d datadir.Dir) (State, error) {
	local, err := loadFile(d.Switch())
	inCluster, clusterErr := loadFile(d.ClusterSwitch())
	if slices.Index(Modes(), inCluster.Mode) > slices.Index(Modes(), local.Mode) {
		local = inCluster
	}
	return local, errors.Join(err, clusterErr)
}

func loadFile(path string) (State, error) {
	s := State{}
	found, err := datadir.ReadJSON(path, &s)
	switch {
	case err != nil:
		return State{Mode: StopNow, Reason: "the switch file cannot be read"}, err
	case !found:
		return State{Mode: Run}, nil
	case !slices.Contains(Modes(), s.Mode):
		return State{Mode: StopNow, Reason: "the switch file has an unknown mode"},
			fmt.Errorf("%s: mode %q is not one of %v", path, s.Mode, Modes())
	}
	return s, nil
}

// Set writes the switch. The running agent, or the next one, obeys it.
func Set(d datadir.Dir, s State) error { return datadir.WriteJSON(d.Switch(), s) }

// SetInCluster writes the cluster's switch down; a State without a mode says
// that the cluster has no opinion.
func SetInCluster(d datadir.Dir, s State) error {
	if s.Mode == "" {
		return datadir.Remove(d.ClusterSwitch())
	}
	var was State
	if found, err := datadir.ReadJSON(d.ClusterSwitch(), &was); err == nil && found && was.Mode == s.Mode && was.Reason == s.Reason {
		return nil // as it was, and so is its time
	}
	return datadir.WriteJSON(d.ClusterSwitch(), s)
}
