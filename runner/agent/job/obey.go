package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/pkg/weakened"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/disk"
	"github.com/berth-dev/berth/runner/agent/jobdir"
	"github.com/berth-dev/berth/runner/agent/order"
	"github.com/berth-dev/berth/runner/agent/recovery"
)

// refusal is a result before the engine began: nothing was done.
type refusal struct{ result jobspec.Result }

func (r *refusal) Error() string { return r.result.Error }

func refuse(outcome jobspec.Outcome, remedy, format string, args ...any) *refusal {
	return &refusal{result: jobspec.Result{Outcome: outcome, Error: fmt.Sprintf(format, args...), Remedy: remedy}}
}

// admit looks at the assignment itself: was it ordered, is it a job for this
// runner, now?
func (j *job) admit(ctx context.Context) error {
	if j.fault != nil {
		return refuse(jobspec.OutcomeRefused, "", "the job is not one that this runner can work on: %v", j.fault)
	}
	if err := j.obeyOrder(ctx); err != nil {
		return err
	}
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
	if len(differs) > 0 {
		r := refuse(jobspec.OutcomeRefused, "", "the job is not for this runner: %s", fields(differs))
		r.result.Differs = differs
		return r
	}
	return j.askSwitch()
}

// obeyOrder checks the order of a job. A run that this runner started by itself
// has none: the signed settings are its authority for reading, and the acceptance of
// its script for more.
func (j *job) obeyOrder(ctx context.Context) error {
	if j.attempt.Tick != nil {
		rule, known := order.RuleOf(j.spec.Kind, j.spec.Operation)
		if !known || !rule.Own && (rule.Mutates || j.spec.Operation != jobspec.OperationRun) {
			return refuse(jobspec.OutcomeRefused, "", "no schedule can %s a %s", j.spec.Operation, j.spec.Kind)
		}
		return nil
	}
	verdict := order.Judge(j.deps.Trusted, j.attempt.Assignment.Order, j.orderFacts())
	if verdict.Outcome == "" {
		j.order = verdict.Order
		return nil
	}
	again := "retry the step"
	if j.spec.Operation == jobspec.OperationBuild {
		again = "start the build again"
	}
	what, remedy := "the order was refused", again+": that makes a new order; if it does not help, somebody other than the control plane may be giving orders"
	switch {
	case verdict.Outcome == jobspec.OutcomeStale:
		what, remedy = "the order came too late, or was started too often", "plan the change again"
	case j.attempt.Assignment.Order == nil:
		what, remedy = "the job has no order", again+": an older control plane made this job, or somebody without its key did"
	}
	return j.decline(ctx, verdict, what, remedy)
}

func (j *job) orderFacts() order.Facts {
	runner := j.deps.Runner
	f := order.Facts{
		OrgID: runner.OrgID, InstallID: runner.InstallID, RunnerID: runner.RunnerID, Build: runner.Kind == string(runnerapi.RunnerKindBuild),
		MachineKeyID: capsule.KeyID(j.deps.Keys.Public()), RunnerVersion: j.deps.Version,
		JobID: j.attempt.Assignment.JobID, Attempt: j.attempt.Assignment.Attempt,
		Spec: j.spec, SpecDigest: capsule.DigestBytes(j.attempt.SpecText),
		Past: j.deps.Orders.Past, Spent: j.deps.Orders.Spent, Floor: j.deps.Orders.Floor(), Now: j.deps.Now(),
	}
	if len(j.spec.State) > 0 {
		f.StateDigest = capsule.DigestBytes(j.spec.State)
	}
	if j.deps.Nonces != nil {
		f.NonceUsed = j.deps.Nonces.Used
	}
	return f
}

// decline is the refusal of an order, which is recorded.
func (j *job) decline(ctx context.Context, v order.Verdict, what, remedy string) error {
	r := refuse(v.Outcome, remedy, "%s: %s", what, fields(v.Differs))
	r.result.Differs = v.Differs
	j.recordEvent(ctx, string(v.Outcome), "order for "+j.what()+": "+fields(v.Differs))
	return r
}

// countStart counts the engine that is about to be started, durably. It may run
// while the attempt is written.
func (j *job) countStart(attempt int) error {
	if j.tick != nil || weakened.Is(weakened.OrderLifetime) || weakened.Is(weakened.OrderOnce) || weakened.Is(weakened.EffectOnce) {
		return nil
	}
	err := j.deps.Orders.Begin(j.order, attempt, j.deps.Now())
	if errors.Is(err, order.ErrUsedUp) || errors.Is(err, order.ErrExpired) {
		outcome := jobspec.OutcomeRefused
		if j.spec.ChangeID != "" {
			outcome = jobspec.OutcomeStale
		}
		return refuse(outcome, "retry the step: it makes a new order", "the engine was not started: %v", err)
	}
	return err
}

// obey checks the order of a job that mutates. When it returns nil the order is
// used up and the intent is in the chain, both on disk.
func (j *job) obey(ctx context.Context) error {
	verdict, sealed, record, err := j.judge(ctx)
	if err != nil {
		return err
	}
	if verdict.Outcome != "" {
		what := "the order was refused"
		remedy := "plan the change again; if that does not help, somebody other than the control plane may be giving orders"
		if j.terraformGone != "" && fields(verdict.Differs) == "tool.digest" {
			what, remedy = j.terraformGone, "plan the change again, or bring that program back"
		}
		if verdict.Outcome == jobspec.OutcomeStale {
			what, remedy = moved(verdict.Differs), "plan the change again"
		}
		if record.Answer() == policy.Deny {
			what, remedy = "the customer's guardrails deny this change", explainRemedy(record.ChangeID)
		}
		return j.decline(ctx, verdict, what, remedy)
	}
	if err := j.learnHidden(j.spec.ChangeID, record.Hidden); err != nil {
		return err
	}
	// These are the bytes whose digest the order was checked against.
	if err := j.unpin(ctx, j.spec.ChangeID, sealed, j.dir.In("pinned")); err != nil {
		return refuse(jobspec.OutcomeRefused, "plan the change again", "%v", err)
	}
	if err := j.takeImage(record); err != nil {
		return err
	}
	if err := j.judgeAgain(ctx, record); err != nil {
		return err
	}
	done, err := j.agree(ctx, record)
	if err != nil {
		return err
	}
	defer done()
	if err := j.agreedTo(record); err != nil {
		return err
	}
	return j.commit(ctx, verdict.Order)
}

// judge collects the facts and decides. With the verdict come the sealed bytes
// that the plan pinned, and what this runner wrote down of the plan.
func (j *job) judge(ctx context.Context) (_ order.Verdict, sealed []byte, record order.Record, _ error) {
	var planned *order.Record
	record, found, err := j.planRecord()
	if err != nil {
		return order.Verdict{}, nil, record, err
	}
	tool := capsule.Tool{}
	if found {
		planned, tool = &record, record.Effect.Tool
	}
	place, err := j.measure()
	if err != nil {
		return order.Verdict{}, nil, record, err
	}
	if place.Lineage, place.Serial, err = j.presentState(ctx); err != nil {
		return order.Verdict{}, nil, record, err
	}
	sealed = j.pinned(ctx, planned)
	facts := order.EffectFacts{
		Spec:         j.spec,
		Fence:        j.attempt.Assignment.Fence,
		Planned:      planned,
		Effect:       order.Again(record.Effect, order.Base(j.spec, place, tool)),
		PinnedDigest: digestOfPinned(sealed),
	}
	j.guardedNow(record, &facts.Effect)
	if j.spec.Resource != nil {
		facts.HighestFence = j.deps.Fences.Highest(j.spec.Resource.ID)
	}
	facts.ArtifactProblem = j.artifactProblem(ctx)
	return order.JudgeEffect(j.order, facts), sealed, record, nil
}

// planRecord is what this runner wrote down of the plan of the change.
func (j *job) planRecord() (record order.Record, found bool, err error) {
	return j.planOf(j.spec.ChangeID)
}

func (j *job) planOf(change string) (record order.Record, found bool, err error) {
	if !id.Valid(id.Change, change) { // it becomes a file name
		return record, false, nil
	}
	if found, err = datadir.ReadJSON(j.deps.Dir.Plan(change), &record); err != nil {
		err = fmt.Errorf("record of the plan: %w", err)
	}
	return record, found, err
}

// presentState asks for lineage and serial of the state as it is now, and waits
// while the control plane is away.
func (j *job) presentState(ctx context.Context) (lineage string, serial int64, err error) {
	if j.spec.Kind == jobspec.KindRunnerUpdate {
		return j.presentVersion()
	}
	if j.kind().ByAgent {
		lineage, serial = j.deps.Scripts.Position()
		return lineage, serial, nil
	}
	if !j.spec.KeepsState() || j.spec.Resource == nil {
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
func (j *job) commit(ctx context.Context, o capsule.Order) error {
	err := j.advance(recovery.Ordered, func(a *jobdir.Attempt) {
		a.Capsule, a.Effect = a.Assignment.Order.PayloadDigest(), o.EffectDigest
	})
	if err != nil {
		return err
	}
	// The intent names it by digest; this is for who has to show it.
	if err := datadir.WriteJSON(j.deps.Dir.KeptOrder(j.spec.JobID), j.attempt.Assignment.Order); err != nil {
		return fmt.Errorf("keep the order: %w", err)
	}
	if err := j.deps.Fences.Raise(o.ResourceID, o.Fence); err != nil {
		return fmt.Errorf("fence: %w", err)
	}
	err = j.deps.Nonces.Use(o.Nonce, o.ExpiresAt, j.deps.Now())
	if disk.Full(err) {
		return err // says nothing of the order
	}
	if err != nil {
		r := refuse(jobspec.OutcomeRefused, "", "the order was refused: nonce")
		r.result.Differs = []jobspec.Difference{{Field: "nonce", Want: "one that was never used", Got: err.Error()}}
		return r
	}
	head, err := j.deps.Chain.Append(ctx, chain.Record{
		Actor: "control plane", Kind: chain.Intent, What: j.what(), Job: j.spec.JobID,
		Effect: j.attempt.Effect, Capsule: j.attempt.Capsule, Scripts: j.acceptance(), Consent: j.consent,
	})
	if err != nil {
		return fmt.Errorf("chain: %w", err) // no record, no effect
	}
	return j.advance(recovery.Ordered, func(a *jobdir.Attempt) { a.Intent = head.Seq })
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
		Effect: j.attempt.Effect, Capsule: j.attempt.Capsule, Result: string(result.Outcome), Detail: result.Error, Scripts: j.acceptedNow(result),
	})
	return err
}

func (j *job) recordEvent(ctx context.Context, result, detail string) {
	if j.deps.Chain == nil { // a Build Runner keeps none
		j.log.WarnContext(ctx, "order was not obeyed", "outcome", result, "detail", detail)
		return
	}
	err := j.deps.Runs.Refusal(ctx, chain.Record{
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
	case s.Action != nil && s.Action.AdHoc:
		return string(s.Operation) + " ad-hoc " + s.Action.Name
	case s.Resource != nil && s.Destroy:
		return string(s.Operation) + " teardown of " + s.Resource.Name
	case s.Resource != nil:
		return string(s.Operation) + " " + s.Resource.Name
	case j.tick != nil && j.tick.Remedy != nil:
		return "remediation of " + j.tick.Remedy.Check + " by action " + j.tick.Action
	case s.Action != nil && s.Operation == jobspec.OperationTick:
		return "scheduled run of action " + s.Action.Name
	case s.Action != nil:
		return string(s.Operation) + " action " + s.Action.Name
	case s.RunnerUpdate != nil:
		return string(s.Operation) + " runner version " + s.RunnerUpdate.Version
	case s.Release != nil && s.Destroy:
		return string(s.Operation) + " forgetting all scripts"
	case s.Release != nil:
		return fmt.Sprintf("%s acceptance of release %d", s.Operation, s.Release.Number)
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
