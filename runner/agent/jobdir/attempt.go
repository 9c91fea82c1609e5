package jobdir

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
	// Until is how long a run that may change something may wait to begin: other
	// changes of the install come first.
	Until time.Time `json:"until,omitzero"`
	// Remedy is set for a run about an unhealthy check, nil for one of the schedule.
	Remedy *jobspec.RunRemedy `json:"remedy,omitempty"`
	// Looks are the probes that one engine looks at together, in the order of the spec; of
	// the tick itself nothing is reported then.
	Looks []Look `json:"looks,omitempty"`
}

// Look is one of the probes of a tick, a run of its own.
type Look struct {
	RunID  string    `json:"run_id"`
	Action string    `json:"action"` // a jobspec.Scheduled.Name
	At     time.Time `json:"at"`
}

// Ticks are those that are reported, each with the id of its run and what came of it: of a
// tick with several looks one for each. A look that the engine did not come to failed as the
// attempt did.
func (t Tick) Ticks(runID string, r jobspec.Result) []Reported {
	if len(t.Looks) == 0 {
		return []Reported{{Tick: t, RunID: runID, Result: r}}
	}
	var all []Reported
	for i, look := range t.Looks {
		own := r
		own.Looks = nil
		switch {
		case i >= len(r.Looks) && r.Outcome == jobspec.OutcomeSucceeded:
			own.Outcome, own.Error = jobspec.OutcomeFailed, "the engine said nothing of it"
		case i < len(r.Looks):
			l := r.Looks[i]
			own.Outcome, own.ExitCode, own.Error, own.Remedy, own.StartedAt, own.FinishedAt = l.Outcome, l.ExitCode, l.Error, "", l.StartedAt, l.FinishedAt
			own.Findings, own.Certificates = l.Findings, l.Certificates
		}
		all = append(all, Reported{Tick: Tick{Action: look.Action, At: look.At, HealthCheck: t.HealthCheck}, RunID: look.RunID, Result: own})
	}
	return all
}

// Names are those of all that the tick runs.
func (t Tick) Names() []string {
	if len(t.Looks) == 0 {
		return []string{t.Action}
	}
	var names []string
	for _, look := range t.Looks {
		names = append(names, look.Action)
	}
	return names
}

// Reported is a tick as it is reported.
type Reported struct {
	Tick   Tick
	RunID  string
	Result jobspec.Result
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

// Belongs reports what is wrong with an attempt that was read from a directory
// of this name.
func (a *Attempt) Belongs(name string) error {
	if a.Name() != name || a.Phase == "" {
		return fmt.Errorf("attempt.json is of %q in phase %q, and its directory is %s", a.Name(), a.Phase, name)
	}
	return nil
}

// Folder is the directory of an attempt.
type Folder struct{ Path string }

func (f Folder) attempt() string { return filepath.Join(f.Path, "attempt.json") }

// Report is the file of what is to be reported.
func (f Folder) Report() string { return filepath.Join(f.Path, "report.json") }

// Plan is the file of what a plan hands in.
func (f Folder) Plan() string { return filepath.Join(f.Path, "plan.json") }

// Lock is the file that the agent and the engine hold.
func (f Folder) Lock() string { return filepath.Join(f.Path, "lock") }

// Stdout is the file of the engine's standard output.
func (f Folder) Stdout() string { return filepath.Join(f.Path, "stdout.log") }

// Stderr is the file of the engine's standard error.
func (f Folder) Stderr() string { return filepath.Join(f.Path, "stderr.log") }

// Engine is the job directory of the contract, the engine's own.
func (f Folder) Engine() string { return filepath.Join(f.Path, "engine") }

// Pod is the directory of what is kept of the engine's pod.
func (f Folder) Pod() enginepod.Folder { return enginepod.Folder(filepath.Join(f.Path, "pod")) }

// In is a file that the engine is given.
func (f Folder) In(name string) string { return filepath.Join(f.Path, "engine", "in", name) }

// parent opens the directory that the attempt's is in.
func (f Folder) parent() (jobs *os.Root, name string, err error) {
	jobs, err = os.OpenRoot(filepath.Dir(f.Path))
	return jobs, filepath.Base(f.Path), err
}

// Make makes the directory and writes the attempt down. Only then does the
// attempt exist for a later agent.
func (f Folder) Make(a Attempt, gid int) error {
	if err := f.Open(gid); err != nil {
		return err
	}
	return f.Record(a)
}

// Open makes the directory, which engines of a group may pass through.
func (f Folder) Open(gid int) error {
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

// Record writes the attempt down in its directory, durably.
func (f Folder) Record(a Attempt) error {
	if err := f.Write(a); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(f.Path))
}

// Write writes the attempt down in a directory that is on disk already.
func (f Folder) Write(a Attempt) error { return datadir.WriteJSON(f.attempt(), a) }

// Load reads the attempt of a directory. found is false for a directory that
// was never finished being made.
func (f Folder) Load() (a Attempt, found bool, err error) {
	found, err = datadir.ReadJSON(f.attempt(), &a)
	if len(a.SpecText) == 0 { // an agent of before wrote it
		a.SpecText = a.Assignment.Spec
	}
	a.Assignment.Spec = nil
	return a, found, err
}

// ReadOut reads a file that the engine wrote below its directory. Whatever the
// engine put there instead (a symlink out of its directory, a pipe, a file
// without end) cannot make the agent read anything else. found is false when
// there is none.
func (f Folder) ReadOut(name string, limit int64) (data []byte, found bool, err error) {
	root, err := os.OpenRoot(f.Engine())
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = root.Close() }()
	return datadir.ReadRegular(root, name, limit)
}

// OpenOut opens a directory that the engine made below its own. A symlink may be
// in its place, but leads nowhere outside of the engine's directory.
func (f Folder) OpenOut(name string) (*os.Root, error) {
	root, err := os.OpenRoot(f.Engine())
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return root.OpenRoot(name)
}

// ReadOutJSON is ReadOut of a JSON document.
func (f Folder) ReadOutJSON(name string, limit int64, v any) (found bool, err error) {
	data, found, err := f.ReadOut(name, limit)
	if err != nil || !found {
		return found, err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return true, fmt.Errorf("%s of the engine is not what the job contract says", name)
	}
	return true, nil
}

// Renew makes an empty folder for the engine, in which nobody else has ever
// been.
func (f Folder) Renew() error {
	attempt, err := os.OpenRoot(f.Path)
	if err != nil {
		return err
	}
	defer func() { _ = attempt.Close() }()
	if err := datadir.RemoveAll(attempt, "engine"); err != nil {
		return err
	}
	for _, dir := range []string{"engine", "engine/in", "engine/out", "engine/work", "engine/work/home", "engine/work/tmp"} {
		if err := attempt.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// Remove deletes the attempt's directory, whatever an engine left in it.
func (f Folder) Remove() error {
	jobs, name, err := f.parent()
	if err != nil {
		return err
	}
	defer func() { _ = jobs.Close() }()
	return datadir.RemoveAll(jobs, name)
}
