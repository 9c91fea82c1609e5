package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/order"
	"github.com/berth-dev/berth/runner/agent/recovery"
)

// refusal is a result before the engine began: nothing was done.
type refusal struct{ result jobspec.Result }

func (r *refusal) Error() string { return r.result.Error }

func refuse(outcome jobspec.Outcome, remedy, format string, args ...any) *refusal {
	return &refusal{result: jobspec.Result{Outcome: outcome, Error: fmt.Sprintf(format, args...), Remedy: remedy}}
}

// admit looks at the assignment itself: is it a job for this runner, now?
func (j *job) admit() error {
	spec, runner := j.spec, j.deps.Runner
	if err := spec.Validate(); err != nil {
		return refuse(jobspec.OutcomeRefused, "", "the job is not one that this runner can work on: %s", oneLine(err))
	}
	var differs []jobspec.Difference
	same := func(field, want, got string) {
		if want != got {
			differs = append(differs, jobspec.Difference{Field: field, Want: want, Got: got})
		}
	}
	same("job_id", j.attempt.Assignment.JobID, spec.JobID)
	same("org_id", runner.OrgID, spec.OrgID)
	same("install_id", runner.InstallID, spec.InstallID)
	valid := func(field, prefix, value string) { // these become file names
		if value != "" && !id.Valid(prefix, value) {
			differs = append(differs, jobspec.Difference{Field: field, Want: prefix + "_…", Got: value})
		}
	}
	valid("change_id", id.Change, spec.ChangeID)
	valid("continues", id.Change, spec.Continues)
	if spec.Resource != nil {
		valid("resource.id", id.Resource, spec.Resource.ID)
	}
	if build := spec.Operation == jobspec.OperationBuild; build != (runner.Kind == string(runnerapi.RunnerKindBuild)) {
		differs = append(differs, jobspec.Difference{Field: "operation", Want: "one of a runner of kind " + runner.Kind, Got: string(spec.Operation)})
	}
	if len(differs) > 0 {
		r := refuse(jobspec.OutcomeRefused, "", "the job is not for this runner: %s", fields(differs))
		r.result.Differs = differs
		return r
	}
	return j.askSwitch()
}

// askSwitch reads the customer's switch anew.
func (j *job) askSwitch() error {
	state := j.deps.Switch.Read()
	allowed := state.Mode.Job(j.spec.Mutates())
	if j.attempt.Tick != nil {
		allowed = state.Mode.Scheduled(j.attempt.Tick.HealthCheck)
	}
	if allowed {
		return nil
	}
	outcome, remedy := jobspec.OutcomeNotStarted, ""
	if state.Mode.Claims() { // work goes on, only not of this kind: waiting would not help
		outcome, remedy = jobspec.OutcomeRefused, "ask the customer to set the runner's switch to run"
	}
	text := fmt.Sprintf("the customer's switch is at %s", state.Mode)
	if state.Reason != "" {
		text += " (" + state.Reason + ")"
	}
	return refuse(outcome, remedy, "%s", text)
}

// obey checks the order of a job that mutates. When it returns nil the order is
// used up and the intent is in the chain, both on disk.
func (j *job) obey(ctx context.Context) error {
	verdict, sealed, err := j.judge(ctx)
	if err != nil {
		return err
	}
	if verdict.Outcome != "" {
		what := "the order was refused"
		remedy := "plan the change again; if that does not help, somebody else than the control plane may be giving orders"
		if verdict.Outcome == jobspec.OutcomeStale {
			what, remedy = "the live state moved since the plan", "plan the change again"
		}
		r := refuse(verdict.Outcome, remedy, "%s: %s", what, fields(verdict.Differs))
		r.result.Differs = verdict.Differs
		j.recordEvent(ctx, string(verdict.Outcome), "order for "+j.what()+": "+fields(verdict.Differs))
		return r
	}
	// These are the bytes whose digest the order was checked against.
	if err := j.unpin(ctx, j.spec.ChangeID, sealed, j.dir.in("pinned")); err != nil {
		return refuse(jobspec.OutcomeRefused, "plan the change again", "%v", err)
	}
	return j.commit(ctx, verdict.Capsule)
}

// judge collects the facts and decides.
func (j *job) judge(ctx context.Context) (order.Verdict, []byte, error) {
	var planned *order.Record
	record := order.Record{}
	found, err := datadir.ReadJSON(j.deps.Dir.Plan(j.spec.ChangeID), &record)
	if err != nil {
		return order.Verdict{}, nil, fmt.Errorf("record of the plan: %w", err)
	}
	tool := capsule.Tool{}
	if found {
		planned, tool = &record, record.Effect.Tool
	}
	place, err := j.measure()
	if err != nil {
		return order.Verdict{}, nil, err
	}
	if place.Lineage, place.Serial, err = j.presentState(ctx); err != nil {
		return order.Verdict{}, nil, err
	}
	sealed := j.pinned(ctx, planned)
	facts := order.Facts{
		RunnerID:      j.deps.Runner.RunnerID,
		RunnerVersion: j.deps.Version,
		Spec:          j.spec,
		Fence:         j.attempt.Assignment.Fence,
		Planned:       planned,
		Effect:        order.Again(record.Effect, order.Base(j.spec, place, tool)),
		PinnedDigest:  digestOfPinned(sealed),
		NonceUsed:     j.deps.Nonces.Used,
		Now:           j.deps.Now(),
	}
	if j.spec.Resource != nil {
		facts.HighestFence = j.deps.Fences.Highest(j.spec.Resource.ID)
	}
	if j.spec.Artifact != nil {
		if err := j.deps.Layout.Verify(ctx, digest.Digest(j.spec.Artifact.Digest)); err != nil {
			facts.ArtifactProblem = err.Error()
		}
	}
	return order.Judge(j.deps.Trusted, j.attempt.Assignment.Capsule, facts), sealed, nil
}

// presentState asks for lineage and serial of the state as it is now, and waits
// while the control plane is away.
func (j *job) presentState(ctx context.Context) (lineage string, serial int64, err error) {
	if j.spec.Kind != jobspec.KindTerraformModule || j.spec.Resource == nil {
		return "", 0, nil
	}
	var state *runnerapi.State
	err = control.Retry(ctx, j.log, "read state", func(ctx context.Context) (err error) {
		state, err = j.deps.API.State(ctx, j.spec.Resource.ID, j.attempt.Key())
		return err
	})
	if err != nil || state == nil {
		return "", 0, err
	}
	return state.Lineage, state.Serial, nil
}

// commit uses the order up: fence, nonce, intent. From here on the order cannot
// be given again.
func (j *job) commit(ctx context.Context, c capsule.Capsule) error {
	err := j.advance(recovery.Ordered, func(a *Attempt) {
		a.Capsule, a.Effect = a.Assignment.Capsule.PayloadDigest(), c.EffectDigest
	})
	if err != nil {
		return err
	}
	if err := j.deps.Fences.Raise(c.ResourceID, c.Fence); err != nil {
		return fmt.Errorf("fence: %w", err)
	}
	if err := j.deps.Nonces.Use(c.Nonce, c.ExpiresAt, j.deps.Now()); err != nil {
		r := refuse(jobspec.OutcomeRefused, "", "the order was refused: nonce")
		r.result.Differs = []jobspec.Difference{{Field: "nonce", Want: "one that was never used", Got: err.Error()}}
		return r
	}
	head, err := j.deps.Chain.Append(ctx, chain.Record{
		Actor: "control plane", Kind: chain.Intent, What: j.what(), Job: j.spec.JobID,
		Effect: j.attempt.Effect, Capsule: j.attempt.Capsule,
	})
	if err != nil {
		return fmt.Errorf("chain: %w", err) // no record, no effect
	}
	return j.advance(recovery.Ordered, func(a *Attempt) { a.Intent = head.Seq })
}

// recordOutcome answers the intent in the chain, once.
func (j *job) recordOutcome(ctx context.Context, result jobspec.Result) error {
	if j.attempt.Intent == 0 {
		return nil
	}
	open := false
	for _, r := range j.deps.Chain.OpenIntents() {
		open = open || r.Seq == j.attempt.Intent
	}
	if !open {
		return nil
	}
	_, err := j.deps.Chain.Append(ctx, chain.Record{
		Actor: "runner", Kind: chain.Outcome, What: j.what(), Intent: j.attempt.Intent, Job: j.spec.JobID,
		Effect: j.attempt.Effect, Capsule: j.attempt.Capsule, Result: string(result.Outcome), Detail: result.Error,
	})
	return err
}

func (j *job) recordEvent(ctx context.Context, result, detail string) {
	_, err := j.deps.Chain.Append(ctx, chain.Record{
		Actor: "runner", Kind: chain.Event, What: j.what(), Job: j.spec.JobID, Result: result, Detail: detail,
	})
	if err != nil {
		j.log.ErrorContext(ctx, "chain cannot be written", "err", err)
	}
}

// what names the job for people.
func (j *job) what() string {
	s := j.spec
	switch {
	case s.Resource != nil && s.Destroy:
		return string(s.Operation) + " teardown of " + s.Resource.Name
	case s.Resource != nil:
		return string(s.Operation) + " " + s.Resource.Name
	case s.Action != nil:
		return string(s.Operation) + " action " + s.Action.Name
	}
	return string(s.Operation)
}

func fields(differs []jobspec.Difference) string {
	var names []byte
	for i, d := range differs {
		if i > 0 {
			names = append(names, ", "...)
		}
		names = append(names, d.Field...)
	}
	return string(names)
}

func oneLine(err error) string {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return err.Error()
	}
	text := ""
	for i, e := range joined.Unwrap() {
		if i > 0 {
			text += "; "
		}
		text += e.Error()
	}
	return text
}
