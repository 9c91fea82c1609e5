package up

import (
	"maps"
	"sync"
)

// State is what the supervisor knows across its own death; state.json.
type State struct {
	Port       int      `json:"port"` // the first of the four
	Supervisor *Process `json:"supervisor,omitempty"`
	// Parts are the processes that were started and not seen to end, by name.
	Parts map[string]PartRecord `json:"parts,omitempty"`
	// Runners are the runners to keep, by id.
	Runners map[string]RunnerRecord `json:"runners,omitempty"`
	// EngineUIDs counts the uids that were given away; none is used twice.
	EngineUIDs int `json:"engine_uids,omitempty"`
	// Kubeconfig is how local installs reach their cluster, "" without one.
	Kubeconfig string `json:"kubeconfig,omitempty"`
}

// PartRecord is a process that was started.
type PartRecord struct {
	Process
	Order  int    `json:"order"`  // later ones stop first
	Digest string `json:"digest"` // of the command that was run
}

// RunnerRecord is a runner that somebody asked for. Its secrets are files in
// its directory.
type RunnerRecord struct {
	Kind         string `json:"kind"`
	OrgID        string `json:"org_id"`
	InstallID    string `json:"install_id,omitempty"`
	Name         string `json:"name"`
	StackVersion int    `json:"stack_version,omitempty"`
	EngineUID    int    `json:"engine_uid,omitempty"` // 0: the engines run as our user
	RunnerAPIURL string `json:"runner_api_url"`
	// RegistryPort is where the kubelets of this machine pull the install's
	// images; 0 without a cluster. Images are named by it, so it stays.
	RegistryPort int `json:"registry_port,omitempty"`
	// Order is a digest of the last order, to recognise a repetition.
	Order string `json:"order"`
	// PhonedHome is set once the control plane has the stack's outputs.
	PhonedHome bool `json:"phoned_home"`
}

// ledger keeps State on disk. Every change is on disk when it returns.
type ledger struct {
	path string
	mu   sync.Mutex
	s    State
}

func openLedger(path string) (*ledger, error) {
	l := &ledger{path: path}
	if _, err := readJSON(path, &l.s); err != nil {
		return nil, problem(err, "look into it and repair it, or delete it when nothing of this Berth runs any more", "%v", err)
	}
	return l, nil
}

// read returns a copy.
func (l *ledger) read() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.s.clone()
}

// change applies fn and writes the outcome; when that fails, nothing changed.
func (l *ledger) change(fn func(*State)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.s.clone()
	fn(&next)
	if err := writeJSON(l.path, next); err != nil {
		return onDisk(l.path, err)
	}
	l.s = next
	return nil
}

func (s State) clone() State {
	s.Parts, s.Runners = maps.Clone(s.Parts), maps.Clone(s.Runners)
	if s.Parts == nil {
		s.Parts = map[string]PartRecord{}
	}
	if s.Runners == nil {
		s.Runners = map[string]RunnerRecord{}
	}
	return s
}
