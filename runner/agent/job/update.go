package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/ending"
	"github.com/berth-dev/berth/runner/agent/order"
	"github.com/berth-dev/berth/runner/agent/versions"
)

const (
	// maxPackage bounds what is unpacked of a package: a list and an archive.
	maxPackage = 1 << 30
	// trustRemedy is for a runner whose customer has pinned no release key.
	trustRemedy = "ask the customer to pin the vendor's release key: berth-runner trust release-key add FILE"
)

// runnerUpdate brings another version of the runner. What the order names are bytes:
// the release key that the customer pinned says whether they are a runner.
type runnerUpdate struct {
	job     *job
	running versions.Version
	opened  versions.Opened
}

// plannedUpdate is what people decide on, and what the plan keeps for the apply.
type plannedUpdate struct {
	From     versions.Version `json:"from"`
	To       versions.Version `json:"to"`
	Archive  string           `json:"archive"`
	SignedBy string           `json:"signed_by"`
}

func (u *runnerUpdate) planned() plannedUpdate {
	return plannedUpdate{From: u.running, To: u.opened.Version, Archive: u.opened.Archive, SignedBy: u.opened.SignedBy}
}

// presentVersion is the position of what runs, as Scripts.Position is of scripts.
func (j *job) presentVersion() (lineage string, serial int64, err error) {
	state, err := j.deps.Update.Versions.Read()
	return "runner", state.Serial, err
}

// ready fetches the package and verifies it. Plan and apply both do.
func (u *runnerUpdate) ready(ctx context.Context) error {
	j, wish := u.job, *u.job.spec.RunnerUpdate
	if how := j.deps.Update.Elsewhere; how != "" {
		return refuse(jobspec.OutcomeRefused, how, "this runner does not update itself: it is a container, and its image is what is updated")
	}
	if err := u.measure(); err != nil {
		return err
	}
	state, err := j.deps.Update.Versions.Read()
	if err != nil {
		return fmt.Errorf("versions of the runner: %w", err)
	}
	if state.Trial != nil {
		return refuse(jobspec.OutcomeFailed, "retry the step once it has shown that it works", "version %s of the runner is on trial", state.Trial.Version.Version)
	}
	why, remedy := versions.Wish{
		To: wish.Version, Running: j.deps.Version, Installed: j.deps.Update.Installed, ControlPlane: wish.ControlPlane, Accepted: state.Accepted,
	}.Refusal()
	if why != "" {
		return refuse(jobspec.OutcomeRefused, remedy, "%s", why)
	}
	keys, err := j.deps.Update.Keys()
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		return refuse(jobspec.OutcomeRefused, trustRemedy, "%v", versions.ErrNoKey)
	}
	pack, found := wish.For(order.Platform)
	if !found {
		return refuse(jobspec.OutcomeRefused, "add the archive of this platform: berth runners versions add", "version %s is not available for %s", wish.Version, order.Platform)
	}
	digest, err := j.fetch(ctx, pack.Artifact)
	if err != nil {
		return fmt.Errorf("package of runner version %s: %w", wish.Version, err)
	}
	folder := u.folder("package")
	if err := os.RemoveAll(filepath.Dir(folder)); err != nil { // of an earlier try
		return err
	}
	if err := j.deps.Layout.Unpack(ctx, digest, folder, oci.Limits{MaxBytes: maxPackage, MaxFileBytes: maxPackage, MaxEntries: 10}); err != nil {
		return refusePackage(err)
	}
	u.opened, err = versions.Open(ctx, versions.Offer{Folder: folder, Version: wish.Version, Platform: order.Platform, Keys: keys}, u.folder("release"))
	if err != nil {
		return refusePackage(err)
	}
	j.remark(fmt.Sprintf("runner version %s is signed by release key %s", wish.Version, u.opened.SignedBy))
	return nil
}

// refusePackage says that what was made available is not a runner that the customer's
// key signed. A person has to look: asking again gives the same.
func refusePackage(err error) error {
	return refuse(jobspec.OutcomeRefused, "compare the release with its publisher's, add it again, and check which release key the customer pinned (berth-runner trust)",
		"the package is refused: %v", err)
}

// folder is a place in the job's own directory, which engines do not see.
func (u *runnerUpdate) folder(name string) string {
	return filepath.Join(u.job.dir.Path, "update", name)
}

// measure digests what runs now.
func (u *runnerUpdate) measure() (err error) {
	j := u.job
	u.running = versions.Version{Version: j.deps.Version}
	if u.running.Runner, err = j.deps.Digests.Of(j.deps.Engine.Launcher); err != nil {
		return fmt.Errorf("runner: %w", err)
	}
	if u.running.Engine, err = j.deps.Digests.Of(j.deps.Engine.Path); err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	u.running.Policy, err = j.deps.Digests.Of(filepath.Join(filepath.Dir(j.deps.Engine.Path), versions.PolicyName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("policy engine: %w", err)
	}
	return nil
}

// plan leaves what an engine leaves of a plan.
func (u *runnerUpdate) plan(result *jobspec.Result) error {
	j, planned := u.job, u.planned()
	from, to := planned.From, planned.To
	summary := jobspec.PlanSummary{NoChange: from.Digest() == to.Digest()}
	if !summary.NoChange {
		summary.Update = 1
		summary.Objects = []jobspec.ObjectChange{{Address: "runner", Action: "update", Fields: []jobspec.FieldChange{
			{Path: "version", Before: from.Version, After: to.Version},
			{Path: versions.RunnerName, Before: from.Runner, After: to.Runner},
			{Path: versions.EngineName, Before: from.Engine, After: to.Engine},
			{Path: versions.PolicyName, Before: from.Policy, After: to.Policy},
			{Path: "archive", After: planned.Archive},
			{Path: "signed by release key", After: planned.SignedBy},
		}}}
	}
	result.NoChange = summary.NoChange
	return errors.Join(
		os.MkdirAll(filepath.Join(j.out(), "pinned"), 0o700),
		datadir.WriteJSON(filepath.Join(j.out(), "plan.canonical.json"), planned),
		datadir.WriteJSON(filepath.Join(j.out(), "plan.summary.json"), summary),
		datadir.WriteJSON(filepath.Join(j.out(), "pinned", "update.json"), planned),
		os.RemoveAll(filepath.Dir(u.folder("package"))),
	)
}

// apply puts the version on trial and has the agent end. It returns errDetached: the
// attempt stays, and the agent that runs next says how it ended (finishUpdate).
func (u *runnerUpdate) apply(_ context.Context, result *jobspec.Result) error {
	j := u.job
	var pinned plannedUpdate
	found, err := datadir.ReadJSON(j.dir.In("pinned/update.json"), &pinned)
	if err != nil || !found {
		return refuse(jobspec.OutcomeRefused, "plan the change again", "the pinned update cannot be read")
	}
	if pinned != u.planned() {
		result.Outcome, result.Error, result.Remedy = jobspec.OutcomeStale, "what runs, or the package, is not what was planned with", ending.PlannedAgain
		return nil
	}
	err = j.deps.Disk.Insist(func() error {
		if err := j.deps.Update.Versions.Install(u.opened.Version, u.opened.Folder); err != nil {
			return err
		}
		return j.deps.Update.Versions.Begin(u.opened.Version, j.spec.JobID, j.deps.Version)
	})
	if err != nil {
		return fmt.Errorf("put version %s in place: %w", u.opened.Version.Version, err)
	}
	j.remark(fmt.Sprintf("version %s is on trial: the runner starts it now", u.opened.Version.Version))
	j.deps.Update.Restart()
	return errDetached
}

// finishUpdate says what became of the version that an earlier agent put on trial. The
// one that is on trial waits until that is decided.
func (j *job) finishUpdate(life context.Context) error {
	decided := j.deps.Update.Decided
	for {
		state, err := j.deps.Update.Versions.Read()
		if err != nil {
			return fmt.Errorf("versions of the runner: %w", err)
		}
		outcome, reason := versions.OutcomeOf(state, j.spec.JobID)
		if outcome != versions.OnTrial {
			return j.finish(life, j.updateResult(outcome, reason), nil)
		}
		select {
		case <-decided:
			decided = nil
		case <-life.Done():
			return errDetached
		}
	}
}

// updateResult is the result of an update.
func (j *job) updateResult(outcome versions.Outcome, reason string) jobspec.Result {
	wanted := j.spec.RunnerUpdate.Version
	switch outcome {
	case versions.Confirmed:
		r := jobspec.Result{Outcome: jobspec.OutcomeSucceeded, Tool: &jobspec.Tool{Name: versions.RunnerName, Version: j.deps.Version}}
		if raw, err := json.Marshal(j.deps.Version); err == nil {
			r.Outputs = jobspec.Outputs{"version": {Value: raw}}
		}
		return r
	case versions.Failed:
		return jobspec.Result{
			Outcome: jobspec.OutcomeFailed, Reason: jobspec.ReasonNeedsChange,
			Error:  fmt.Sprintf("version %s of the runner did not work here, and version %s runs again: %s", wanted, j.deps.Version, reason),
			Remedy: "read the runner's log of that time; then choose another version, or fix the cause and retry the step",
		}
	}
	return jobspec.Result{Outcome: jobspec.OutcomeStale, Reason: jobspec.ReasonHostEnded, Error: "the agent stopped before the version was put on trial", Remedy: ending.PlannedAgain}
}
