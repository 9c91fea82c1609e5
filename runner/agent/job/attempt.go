package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/berth-dev/berth/pkg/durable"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/cloudcluster"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/enginepod"
	"github.com/berth-dev/berth/runner/agent/process"
	"github.com/berth-dev/berth/runner/agent/recovery"
	"github.com/berth-dev/berth/runner/agent/stateproxy"
)

// Attempt is what an attempt has on disk, apart from what the engine made.
type Attempt struct {
	Assignment runnerapi.Assignment `json:"assignment"`
	// SpecText is the spec as it came: its order names the digest of these bytes.
	// On disk it stands here and not in the assignment, where it would be written
	// with other spaces.
	SpecText []byte `json:"spec_text,omitempty"`
	// Tick is set for a run that this runner started by its schedule; such an
	// attempt has no lease, and its job is named by the run.
	Tick  *Tick          `json:"tick,omitempty"`
	Phase recovery.Phase `json:"phase"`

	Process *process.ID `json:"process,omitempty"`
	// Pod: the engine runs in a pod of its own.
	Pod       bool              `json:"pod,omitempty"`
	Isolation process.Isolation `json:"isolation,omitzero"`
	StartedAt time.Time         `json:"started_at,omitzero"`
	// Deadline is when the engine is asked to stop.
	Deadline time.Time `json:"deadline,omitzero"`
	// Proxy is how the engine reaches the state proxy, nil without one.
	Proxy *stateproxy.Access `json:"proxy,omitempty"`

	// Script is the digest of the accepted script that a run runs, "" for other
	// jobs.
	Script string `json:"script,omitempty"`

	// Terraform is the executable that the job was given, "" for the operator's.
	Terraform string `json:"terraform,omitempty"`

	// Target names the cluster that the job was given access to, "" without one.
	Target string `json:"target,omitempty"`
	// Cloud is the cluster whose token is renewed while the engine runs.
	Cloud *cloudcluster.Cluster `json:"cloud,omitempty"`

	// Intent is the number of the chain's record of the intent, 0 without one.
	// Effect and Capsule are digests that its outcome names again.
	Intent  int64  `json:"intent,omitempty"`
	Effect  string `json:"effect,omitempty"`
	Capsule string `json:"capsule,omitempty"`
}

// Tick is a scheduled moment of an action.
type Tick struct {
	Action      string    `json:"action"`
	At          time.Time `json:"at"`
	HealthCheck bool      `json:"health_check,omitempty"`
	// Script is the digest of the accepted script, "" for a probe.
	Script string `json:"script,omitempty"`
}

// Spec reads what is to be done.
func (a *Attempt) Spec() (spec jobspec.Spec, err error) {
	if err := json.Unmarshal(a.SpecText, &spec); err != nil {
		return spec, fmt.Errorf("spec of the job: %w", err)
	}
	return spec, nil
}

// Name is the name of the attempt's directories.
func (a *Attempt) Name() string {
	return fmt.Sprintf("%s.%d", a.Assignment.JobID, a.Assignment.Attempt)
}

// Key names the attempt to the control plane.
func (a *Attempt) Key() runnerapi.Attempt {
	return runnerapi.Attempt{JobID: a.Assignment.JobID, Attempt: a.Assignment.Attempt}
}

// folder is the directory of an attempt.
type folder struct{ path string }

func (f folder) attempt() string       { return filepath.Join(f.path, "attempt.json") }
func (f folder) report() string        { return filepath.Join(f.path, "report.json") }
func (f folder) plan() string          { return filepath.Join(f.path, "plan.json") }
func (f folder) lock() string          { return filepath.Join(f.path, "lock") }
func (f folder) stdout() string        { return filepath.Join(f.path, "stdout.log") }
func (f folder) stderr() string        { return filepath.Join(f.path, "stderr.log") }
func (f folder) engine() string        { return filepath.Join(f.path, "engine") }
func (f folder) pod() enginepod.Folder { return enginepod.Folder(filepath.Join(f.path, "pod")) }
func (f folder) in(name string) string { return filepath.Join(f.path, "engine", "in", name) }

// parent opens the directory that the attempt's is in.
func (f folder) parent() (jobs *os.Root, name string, err error) {
	jobs, err = os.OpenRoot(filepath.Dir(f.path))
	return jobs, filepath.Base(f.path), err
}

// make makes the directory and writes the attempt down. Only then does the
// attempt exist for a later agent.
func (f folder) make(a Attempt, gid int) error {
	if err := f.open(gid); err != nil {
		return err
	}
	return f.record(a)
}

// open makes the directory, which engines of a group may pass through.
func (f folder) open(gid int) error {
	mode := os.FileMode(0o700)
	if gid > 0 {
		mode = 0o710
	}
	jobs, name, err := f.parent()
	if err != nil {
		return err
	}
	defer func() { _ = jobs.Close() }()
	if err := jobs.Mkdir(name, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if gid > 0 {
		if err := jobs.Lchown(name, -1, gid); err != nil {
			return err
		}
	}
	return jobs.Chmod(name, mode)
}

// record writes the attempt down in its directory, durably.
func (f folder) record(a Attempt) error {
	if err := f.write(a); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(f.path))
}

func (f folder) write(a Attempt) error { return datadir.WriteJSON(f.attempt(), a) }

// load reads the attempt of a directory. found is false for a directory that
// was never finished being made.
func (f folder) load() (a Attempt, found bool, err error) {
	found, err = datadir.ReadJSON(f.attempt(), &a)
	if len(a.SpecText) == 0 { // an agent of before wrote it
		a.SpecText = a.Assignment.Spec
	}
	a.Assignment.Spec = nil
	return a, found, err
}

// readOut reads a file that the engine wrote below its directory. Whatever the
// engine put there instead (a symlink out of its directory, a pipe, a file
// without end) cannot make the agent read anything else. found is false when
// there is none.
func (f folder) readOut(name string, limit int64) (data []byte, found bool, err error) {
	root, err := os.OpenRoot(f.engine())
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = root.Close() }()
	return datadir.ReadRegular(root, name, limit)
}

// openOut opens a directory that the engine made below its own. A symlink may be
// in its place, but leads nowhere outside of the engine's directory.
func (f folder) openOut(name string) (*os.Root, error) {
	root, err := os.OpenRoot(f.engine())
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return root.OpenRoot(name)
}

// readOutJSON is readOut of a JSON document.
func (f folder) readOutJSON(name string, limit int64, v any) (found bool, err error) {
	data, found, err := f.readOut(name, limit)
	if err != nil || !found {
		return found, err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return true, fmt.Errorf("%s of the engine is not what the job contract says", name)
	}
	return true, nil
}
