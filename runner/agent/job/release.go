package job

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/weakened"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/ending"
	"github.com/berth-dev/berth/runner/agent/plugins"
	"github.com/berth-dev/berth/runner/agent/scripts"
)

// pinnedRelease is what the plan of an acceptance keeps for its apply.
type pinnedRelease struct {
	Release jobspec.Release `json:"release"`
	// From is the version of the set that it was compared with.
	From int64 `json:"from"`
}

// admitScript refuses to run a script or a plugin that was not accepted, no matter
// who signed the order. Of scripts it is for those that run without a decision; an
// apply runs what its own plan pinned.
func (j *job) admitScript(ctx context.Context) error {
	if d := plugins.Refused(j.spec, func(digest string) bool { _, found := j.deps.Scripts.Get(digest); return found }); d != nil {
		return j.refuseScript(*d, "this plugin is not accepted", scripts.AcceptRemedy)
	}
	tick := j.spec.Operation == jobspec.OperationTick
	if weakened.Is(weakened.Scripts) {
		return nil
	}
	if j.spec.Kind != jobspec.KindAction || j.spec.Operation != jobspec.OperationRun && !tick {
		return nil
	}
	by := "order " + j.spec.JobID
	accepted, found := j.deps.Scripts.Find(*j.spec.Action, j.spec.TimeoutSeconds)
	if j.tick != nil {
		by = "the schedule"
		accepted, found = j.deps.Scripts.Get(j.tick.Script)
	}
	if !found {
		carried, err := jobspec.Script{Action: *j.spec.Action, TimeoutSeconds: j.spec.TimeoutSeconds}.Digest()
		if err != nil {
			carried = err.Error()
		}
		if err := j.deps.Runs.Refused(ctx, j.spec.Action.Name, carried, by); err != nil {
			return err
		}
		return j.refuseScript(jobspec.Difference{Field: "script", Want: "one that was accepted", Got: carried}, scripts.NotAccepted, scripts.AcceptRemedy)
	}
	if tick && !accepted.Script.Unattended {
		return j.refuseScript(jobspec.Difference{Field: "script", Want: "one that was accepted to run by itself", Got: accepted.Digest},
			"this script was not accepted to run by itself", scripts.AcceptRemedy)
	}
	if !tick && !accepted.Script.Action.ReadOnly {
		return j.refuseScript(jobspec.Difference{Field: "script", Want: "a check", Got: accepted.Digest},
			"this script may change something: each of its runs needs a decision", "run it with `berth actions run`")
	}
	if o := accepted.Objects(j.spec.Action.Inputs); o != nil {
		return j.refuseScript(o.Differs, o.Text, o.Remedy)
	}
	j.mu.Lock()
	j.attempt.Script = accepted.Digest // on disk with the next phase
	j.mu.Unlock()
	return nil
}

// refuseScript is the refusal of a run.
func (j *job) refuseScript(d jobspec.Difference, text, remedy string) error {
	return j.refuseRun(jobspec.OutcomeRefused, scripts.Objection{Text: text, Remedy: remedy, Differs: d})
}

// refuseRun is refuseScript with any outcome. A tick that was not run was missed.
func (j *job) refuseRun(outcome jobspec.Outcome, o scripts.Objection) error {
	r := refuse(outcome, o.Remedy, "%s", o.Text)
	if j.attempt.Tick != nil {
		r.result.Outcome = jobspec.OutcomeNotStarted
	}
	r.result.Differs = []jobspec.Difference{o.Differs}
	return r
}

// countRun tells of a script that ran, once. One that was stopped before it was
// done did not run to a verdict.
func (j *job) countRun(ctx context.Context, result jobspec.Result) error {
	if j.attempt.Script == "" || result.Outcome == jobspec.OutcomeNotStarted || result.Outcome == jobspec.OutcomeCancelled || result.Outcome == jobspec.OutcomeRefused {
		return nil
	}
	run := scripts.Run{
		Name: j.spec.Action.Name, Digest: j.attempt.Script, Key: j.attempt.Name(), At: result.StartedAt,
		OK: result.Outcome == jobspec.OutcomeSucceeded,
	}
	if j.attempt.Tick != nil {
		run.At = j.attempt.Tick.At
	}
	return j.deps.Runs.Ran(ctx, run)
}

// ownWork is the engine of jobs that the agent does by itself. It is over when it
// is made.
type ownWork struct{ done chan struct{} }

func newOwnWork() ownWork {
	w := ownWork{done: make(chan struct{})}
	close(w.done)
	return w
}

// Done implements engine.
func (w ownWork) Done() <-chan struct{} { return w.done }

// ExitCode implements engine.
func (ownWork) ExitCode() int { return jobspec.ExitFinished }

// Stop implements engine.
func (ownWork) Stop(time.Duration) {}

// byItself is a kind of work that the agent does without an engine.
type byItself struct {
	ready func(context.Context) error                  // what has to be there before the order is used up
	plan  func(*jobspec.Result) error                  // leaves what an engine leaves of a plan
	apply func(context.Context, *jobspec.Result) error // life's context
}

// byItself is how the job's kind of work is done.
func (j *job) byItself() byItself {
	if j.spec.Kind == jobspec.KindRunnerUpdate {
		u := &runnerUpdate{job: j}
		return byItself{ready: u.ready, plan: u.plan, apply: u.apply}
	}
	if j.spec.JudgesOnly() { // by what is made of every build
		return byItself{ready: func(context.Context) error { return nil }, plan: func(*jobspec.Result) error { return nil }}
	}
	return byItself{
		ready: func(ctx context.Context) error { return j.keepScripts(ctx, *j.spec.Release) },
		plan:  j.planAcceptance, apply: j.acceptRelease,
	}
}

// doByItself compares what is asked for with what the runner has accepted, or makes it
// so. No engine is started: the agent leaves in the job's directory what an engine
// would, and all that follows is the same.
func (j *job) doByItself(ctx, life context.Context) (engine, error) {
	work := j.byItself()
	if err := j.roomFor(); err != nil {
		return nil, err
	}
	j.remark("looking at " + j.what())
	for _, dir := range []string{"in", "out"} {
		if err := os.MkdirAll(filepath.Join(j.dir.Engine(), dir), 0o700); err != nil {
			return nil, err
		}
	}
	if err := work.ready(ctx); err != nil {
		return nil, err
	}
	if j.mutates() {
		if err := j.obey(ctx); err != nil {
			return nil, err
		}
	}
	if err := j.askSwitch(); err != nil { // a last look: the switch is above everything
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	err := j.recordStart(false)
	if err != nil {
		return nil, err
	}
	began := j.attempt.StartedAt
	result := jobspec.Result{
		JobID: j.spec.JobID, Outcome: jobspec.OutcomeSucceeded, StartedAt: began, FirstInstructionAt: began,
		Tool: &jobspec.Tool{Name: "berth-runner", Version: j.deps.Version},
	}
	if j.mutates() {
		err = work.apply(life, &result)
	} else {
		err = work.plan(&result)
	}
	if err != nil {
		return nil, err
	}
	result.FinishedAt = j.deps.Now().UTC()
	if err := j.leave(life, "result.json", result); err != nil {
		return nil, err
	}
	return newOwnWork(), nil
}

// planAcceptance leaves what an engine leaves of a plan.
func (j *job) planAcceptance(result *jobspec.Result) error {
	release := *j.spec.Release
	err := j.seeRelease()
	j.seen()
	if err != nil {
		return err
	}
	j.deps.Scripts.Learn(release.Scripts...)
	if j.deps.Secrets != nil && !j.spec.Destroy {
		if err := j.deps.Secrets.Declare(release.Secrets); err != nil {
			return err
		}
	}
	accepted := j.deps.Scripts.List()
	_, version := j.deps.Scripts.Position()
	review, err := scripts.Compare(accepted, release)
	if err != nil {
		return refuse(jobspec.OutcomeFailed, "write the script as UTF-8, then sync and deploy again", "%v", err)
	}
	manifest, err := release.Manifest()
	if err != nil {
		return err
	}
	summary := review.Summary()
	summary.NoChange = review.Nothing()
	if j.spec.Destroy {
		summary.NoChange = len(accepted) == 0
	}
	if result.NoChange = summary.NoChange; result.NoChange { // nobody is asked: the release is accepted with this
		if err := errors.Join(j.takeRelease(release), j.declareRoles(release)); err != nil {
			return err
		}
	}
	pinned := pinnedRelease{Release: release, From: version}
	canonical := struct {
		Manifest jobspec.Manifest `json:"manifest"`
		Pinned   pinnedRelease    `json:"pinned"`
	}{manifest, pinned}
	return errors.Join(
		os.MkdirAll(filepath.Join(j.out(), "pinned"), 0o700),
		datadir.WriteJSON(filepath.Join(j.out(), "plan.canonical.json"), canonical),
		datadir.WriteJSON(filepath.Join(j.out(), "plan.summary.json"), summary),
		datadir.WriteJSON(filepath.Join(j.out(), "pinned", "release.json"), pinned),
	)
}

// acceptRelease makes the pinned scripts the accepted ones. What the settings in
// force schedule goes on until they do not: the release may still be on its way.
func (j *job) acceptRelease(life context.Context, result *jobspec.Result) error {
	var pinned pinnedRelease
	found, err := datadir.ReadJSON(j.dir.In("pinned/release.json"), &pinned)
	if err != nil || !found {
		return refuse(jobspec.OutcomeRefused, "plan the change again", "the pinned release cannot be read")
	}
	if err := j.takeRelease(pinned.Release); err != nil {
		return err
	}
	acceptance := scripts.Acceptance{From: pinned.From, Release: pinned.Release, JobID: j.spec.JobID, Now: j.deps.Now()}
	if !j.spec.Destroy {
		acceptance.Keep = slices.Concat(j.deps.Scheduled(), plugins.Kept(j.deps.Scripts.List()))
	}
	err = j.deps.Disk.Insist(func() error { return j.deps.Scripts.Replace(acceptance) })
	if errors.Is(err, scripts.ErrMoved) {
		result.Outcome, result.Error, result.Remedy = jobspec.OutcomeStale, err.Error(), "plan the change again"
		return nil
	}
	if err == nil {
		err = j.declareRoles(pinned.Release)
	}
	if err != nil {
		return err
	}
	raw, err := json.Marshal(len(j.deps.Scripts.List()))
	if err != nil {
		return err
	}
	return j.leave(life, "outputs.json", jobspec.Outputs{"scripts": {Value: raw}})
}

// acceptance is what the chain says of the scripts that an acceptance is about, nil for
// other jobs.
func (j *job) acceptance() *chain.Scripts {
	if j.spec.Kind != jobspec.KindRelease || j.spec.Release == nil {
		return nil
	}
	about := chain.Scripts{ReleaseID: j.spec.Release.ID, Release: j.spec.Release.Number}
	if manifest, err := j.spec.Release.Manifest(); err == nil {
		about.Manifest, _ = manifest.Digest() // the effect names it in any case
	}
	return &about
}

// acceptedNow adds the scripts that are accepted now, once the job made them so.
func (j *job) acceptedNow(result jobspec.Result) *chain.Scripts {
	about := j.acceptance()
	if about == nil || result.Outcome != jobspec.OutcomeSucceeded {
		return about
	}
	if j.deps.Scripts.By() != j.spec.JobID {
		return nil // a later one has replaced them, and says so
	}
	all := j.deps.Scripts.Named(*about)
	return &all
}

// acceptedAfterAll is the result of an acceptance whose agent died: the set says
// whether it came to be.
func (j *job) acceptedAfterAll() jobspec.Result {
	if j.deps.Scripts.By() == j.spec.JobID {
		return jobspec.Result{Outcome: jobspec.OutcomeSucceeded}
	}
	return jobspec.Result{Outcome: jobspec.OutcomeStale, Reason: jobspec.ReasonHostEnded, Error: "the agent stopped before the scripts were accepted", Remedy: ending.PlannedAgain}
}

// leave writes a file of the job's out directory, and waits for room: what it
// tells of is done.
func (j *job) leave(life context.Context, name string, v any) error {
	return j.stored(life, name, func() error { return datadir.WriteJSON(filepath.Join(j.out(), name), v) })
}

// out is what an engine leaves.
func (j *job) out() string { return filepath.Join(j.dir.Engine(), "out") }

var _ engine = ownWork{}
