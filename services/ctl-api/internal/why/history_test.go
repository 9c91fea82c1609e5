package why_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/why"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// histories and moves are how many histories of how many events the test walks through.
const histories, moves = 300, 80

// Whatever happened to the workflows of an install, at rest everything that waits has a
// reason, somebody who can end it, and a waker or a deadline; each job and step that is asked about
// does too; and what a row says about its next retry and its deadline is so: then there is
// something to do.
func TestNothingWaitsWithoutAReason(t *testing.T) {
	t.Parallel()
	seen := map[why.Code]int{}
	for seed := range uint64(histories) {
		w := newWorld(seed)
		for range moves {
			w.rest(t)
			w.check(t, seen)
			if t.Failed() {
				t.Fatalf("seed %d, after: %v", seed, w.said)
			}
			w.happen()
		}
	}
	for _, code := range []why.Code{
		why.CodeDecision, why.CodeRelease, why.CodeLock, why.CodeFreeze, why.CodePaused, why.CodeStack, why.CodeEnrolment, why.CodeSecret, why.CodeNeeds, why.CodeSwitch,
		why.CodeRunnerOffline, why.CodeRunnerDisputed, why.CodeRunnerProblem, why.CodeRunnerQueue, why.CodeAtWork, why.CodeFailed, why.CodeRoleOff, why.CodeRoleUnknown,
	} {
		if seen[code] == 0 {
			t.Errorf("no history came to %s: %v", code, seen)
		}
	}
}

// world is an install with workflows, as rows in memory. Decisions of flow.Next are carried
// out as package workflow does, without their effects.
type world struct {
	rand      *rand.Rand
	state     flow.State // what the workflows share
	workflows []*history
	runner    ctldb.Runner
	holders   map[string]string // resource → change
	paused    bool              // by the vendor
	frozen    time.Time         // until when
	role      model.WaitReason  // why the role of a step is not on; "" while it is
	ids       int
	said      []string
}

type history struct {
	id    string
	state flow.State
	taken map[string]bool // jobs that the runner has, by id
}

func newWorld(seed uint64) *world {
	w := &world{rand: rand.New(rand.NewPCG(seed, 7)), holders: map[string]string{}}
	w.state = flow.State{Now: now, RunnerID: "rnr_1", NoMachine: true, Locks: flow.Locks{SandboxID: "sandbox"}}
	w.runner = ctldb.Runner{ID: "rnr_1", Switch: "run"}
	if w.rand.IntN(4) > 0 { // an install that is up
		w.state.StackActive, w.state.RunnerActive, w.state.NoMachine, w.runner.LastSeenAt = true, true, false, &now
	}
	for i := range 1 + w.rand.IntN(3) {
		w.workflows = append(w.workflows, w.begin(i))
	}
	return w
}

// begin makes a workflow with some of the steps that there are.
func (w *world) begin(n int) *history {
	h := &history{id: fmt.Sprintf("wfl_%d", n), taken: map[string]bool{}}
	h.state = flow.State{
		WorkflowState: model.WorkflowQueued, RequestedAt: w.state.Now, ApproveAll: w.rand.IntN(2) == 0, PlanOnly: w.rand.IntN(6) == 0,
		StackDeadline: now.Add(flow.StackTime), RunnerDeadline: now.Add(flow.RunnerTime),
	}
	add := func(name string, kind flow.StepKind, resource string, needs ...string) {
		h.state.Steps = append(h.state.Steps, flow.Step{
			ID: fmt.Sprintf("stp_%d_%s", n, name), Name: name, Kind: kind, ResourceID: resource, Needs: needs, State: model.StepPending, MaxRetries: w.rand.IntN(2),
		})
	}
	var first []string
	if w.rand.IntN(2) == 0 {
		add("stack", flow.StepAwaitStack, "")
		add("runner", flow.StepAwaitRunner, "", "stack")
		first = []string{"runner"}
	}
	if w.rand.IntN(2) == 0 {
		add("release", flow.StepAccept, "", first...)
	}
	if w.rand.IntN(2) == 0 {
		add("secrets", flow.StepSecrets, "", first...)
		first = []string{"secrets"}
	}
	if w.rand.IntN(3) == 0 {
		add("sandbox", flow.StepDeploy, "sandbox", first...)
		first = []string{"sandbox"}
	}
	add("component/db", flow.StepDeploy, "db", first...)
	add("component/api", flow.StepTeardown, "api", "component/db")
	add("check/up", flow.StepCheck, "", "component/api")
	return h
}

func (w *world) id(prefix string) string {
	w.ids++
	return fmt.Sprintf("%s_%d", prefix, w.ids)
}

// rest carries out what Next says until it says nothing, in all workflows.
func (w *world) rest(t *testing.T) {
	t.Helper()
	for range 10_000 {
		moved := false
		for _, h := range w.workflows {
			if d := flow.Next(w.of(h)); d.Do != flow.DoNothing {
				w.act(h, d)
				moved = true
			} else if d.WorkflowState == model.WorkflowRunning || d.WorkflowState == model.WorkflowWaiting {
				h.state.WorkflowState = d.WorkflowState
			}
		}
		if !moved {
			return
		}
	}
	t.Fatal("the workflows never come to rest")
}

// of is the state of a workflow with what all share.
func (w *world) of(h *history) flow.State {
	s := h.state
	s.Now, s.StackActive, s.RunnerActive, s.RunnerID = w.state.Now, w.state.StackActive, w.state.RunnerActive, w.state.RunnerID
	s.MissingSecrets, s.NoMachine = w.state.MissingSecrets, w.state.NoMachine
	s.PeopleDecide, s.Hold = w.state.PeopleDecide, w.hold()
	if s.Steps = slices.Clone(s.Steps); w.role != "" {
		last := &s.Steps[len(s.Steps)-2] // the one before the check
		last.Hold = &flow.Hold{Reason: w.role, On: "repair", Text: "role repair is off"}
	}
	s.Locks = flow.Locks{By: w.holders, SandboxID: w.state.Locks.SandboxID}
	for _, q := range w.queue() {
		s.Locks.Queue = append(s.Locks.Queue, flow.Turn{ChangeID: q.ChangeID, Resource: q.ResourceID, RequestedAt: q.RequestedAt})
	}
	return s
}

// hold is what keeps changes from being carried out now.
func (w *world) hold() *flow.Hold {
	switch {
	case w.paused:
		return &flow.Hold{Reason: model.WaitPaused, On: "operator", Text: "ann paused the install"}
	case w.state.Now.Before(w.frozen):
		return &flow.Hold{Reason: model.WaitFreeze, On: "frz_1", Until: w.frozen, Text: "a freeze"}
	}
	return nil
}

// queue is what LockQueue answers.
func (w *world) queue() (rows []ctldb.LockQueueRow) {
	for _, h := range w.workflows {
		for _, s := range h.state.Steps {
			if !h.state.WorkflowState.Finished() && s.State == model.StepWaiting && s.WaitReason == model.WaitLock && s.ResourceID != "" && s.Change != nil {
				rows = append(rows, ctldb.LockQueueRow{ChangeID: s.Change.ID, ResourceID: s.ResourceID, Step: s.Name, WaitsFor: s.WaitOn, WorkflowID: h.id, WorkflowKind: "deploy", CreatedBy: "ann", RequestedAt: h.state.RequestedAt})
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b ctldb.LockQueueRow) int { return a.RequestedAt.Compare(b.RequestedAt) })
	return rows
}

// act does to the rows what package workflow does.
func (w *world) act(h *history, d flow.Decision) {
	var s *flow.Step
	for i := range h.state.Steps {
		if h.state.Steps[i].ID == d.StepID {
			s = &h.state.Steps[i]
		}
	}
	ended := map[flow.Do]model.StepState{
		flow.DoSucceedStep: model.StepSucceeded, flow.DoFailStep: model.StepFailed, flow.DoCancelStep: model.StepCancelled, flow.DoSkipStep: model.StepSkipped,
	}
	switch d.Do {
	case flow.DoStartWorkflow:
		h.state.WorkflowState = model.WorkflowRunning
	case flow.DoFinishWorkflow:
		h.state.WorkflowState = d.WorkflowState
	case flow.DoStartStep:
		s.State = model.StepRunning
	case flow.DoWaitStep, flow.DoLookAgain:
		s.State, s.WaitReason, s.WaitOn, s.WaitDeadline, s.WaitRetryAt = model.StepWaiting, d.Wait.Reason, d.Wait.On, d.Wait.Deadline, d.Wait.RetryAt
	case flow.DoSucceedStep, flow.DoFailStep, flow.DoCancelStep, flow.DoSkipStep:
		s.State = ended[d.Do]
		if s.Change != nil && s.Change.State.Open() {
			s.Change.State = model.ChangeWithdrawn
		}
	case flow.DoPutOff:
		s.State, s.Change = model.StepPending, nil
	case flow.DoCancelJob:
		for _, j := range jobsOf(*s) {
			if j.ID == d.JobID {
				j.CancelRequested = true
				if !h.taken[j.ID] {
					j.State, j.Outcome = model.JobCancelled, string(jobspec.OutcomeFailed)
				}
			}
		}
	case flow.DoRunCheck:
		s.State, s.Run = model.StepRunning, &flow.Job{ID: w.id("job"), State: model.JobQueued}
	default:
		w.actOnChange(s, d)
	}
}

func (w *world) actOnChange(s *flow.Step, d flow.Decision) {
	c := s.Change
	switch d.Do {
	case flow.DoPlan:
		s.State, s.Change = model.StepRunning, &flow.Change{ID: w.id("chg"), State: model.ChangePreparing, EffectDigest: w.id("effect"), Plan: &flow.Job{ID: w.id("job"), State: model.JobQueued}}
	case flow.DoPropose:
		c.State, c.Deadline = model.ChangeProposed, w.state.Now.Add(flow.ApprovalTime)
	case flow.DoNoChange:
		c.State, s.State = model.ChangeNoChange, model.StepRunning
	case flow.DoPlanned:
		c.State = model.ChangePlanned
	case flow.DoApprove:
		c.State, s.State, c.Missing = model.ChangeApproved, model.StepRunning, 0 // a standing answer counts
	case flow.DoReopen:
		c.State, c.ApprovedDigest, c.Deadline = model.ChangeProposed, "", d.Wait.Deadline
		s.State, s.WaitReason, s.WaitOn, s.WaitDeadline, s.WaitRetryAt = model.StepWaiting, d.Wait.Reason, d.Wait.On, d.Wait.Deadline, time.Time{}
	case flow.DoExecute:
		c.State, s.State, c.Apply = model.ChangeExecuting, model.StepRunning, &flow.Job{ID: w.id("job"), State: model.JobQueued}
		if s.ResourceID != "" {
			w.holders[s.ResourceID] = c.ID
		}
	case flow.DoSettleChange:
		if w.holders[s.ResourceID] == c.ID {
			delete(w.holders, s.ResourceID)
		}
		c.State, c.Error = d.ChangeState, d.Error
		switch d.ChangeState {
		case model.ChangeFailed:
			s.Failed++
		case model.ChangeStale:
			s.Stale++
		case model.ChangeUncertain:
			s.Uncertain++
		}
	default:
		panic("the model knows no " + string(d.Do))
	}
}

func jobsOf(s flow.Step) (jobs []*flow.Job) {
	for _, j := range []*flow.Job{s.Run} {
		if j != nil {
			jobs = append(jobs, j)
		}
	}
	if s.Change != nil {
		for _, j := range []*flow.Job{s.Change.Plan, s.Change.Apply} {
			if j != nil {
				jobs = append(jobs, j)
			}
		}
	}
	return jobs
}

// happen is one thing from outside: the customer, a person, the runner or time.
func (w *world) happen() {
	say := func(text string) { w.said = append(w.said, text) }
	h := w.workflows[w.rand.IntN(len(w.workflows))]
	s := &h.state.Steps[w.rand.IntN(len(h.state.Steps))]
	for range 3 { // mostly something that is under way
		if s.State == model.StepRunning || s.State == model.StepWaiting {
			break
		}
		s = &h.state.Steps[w.rand.IntN(len(h.state.Steps))]
	}
	w.state.Now = w.state.Now.Add(time.Second)
	switch w.rand.IntN(26) {
	case 25:
		w.role = []model.WaitReason{"", model.WaitRoleOff, model.WaitRoleUnknown}[w.rand.IntN(3)]
		say("the role is " + string(w.role))
	case 22:
		w.paused = !w.paused && w.rand.IntN(2) == 0
		say(fmt.Sprint("paused ", w.paused))
	case 23:
		w.frozen = w.state.Now.Add([]time.Duration{0, time.Hour, 40 * 24 * time.Hour}[w.rand.IntN(3)])
		say("frozen until " + w.frozen.String())
	case 24:
		w.state.PeopleDecide = w.rand.IntN(3) == 0
		if s.Change != nil && s.Change.State == model.ChangeApproved { // somebody lost the right
			s.Change.Missing, s.Change.ReopenedUntil, s.Change.Void = 1, w.state.Now.Add(flow.ApprovalTime), []string{"ann is no member any more"}
			say("approval of " + s.ID + " void")
		}
	case 0:
		w.state.StackActive = true
		say("stack")
	case 1:
		w.state.RunnerActive, w.state.NoMachine = true, false
		say("enrolled")
	case 2:
		w.state.MissingSecrets = nil
		if w.rand.IntN(2) == 0 {
			w.state.MissingSecrets = []string{"key"}
		}
		say("secrets")
	case 3:
		w.runner.Switch = []string{"run", "pause", "read_only"}[w.rand.IntN(3)]
		say("switch " + w.runner.Switch)
	case 4, 5:
		w.runner.LastSeenAt, w.runner.DisputedSince, w.runner.Facts = ptr(w.state.Now), nil, nil
		switch w.rand.IntN(6) {
		case 0:
			w.runner.Facts = []byte(`{"problem":"disk full"}`)
		case 1:
			w.runner.DisputedSince = ptr(w.state.Now)
		}
		say("runner seen")
	case 6:
		w.state.Now = w.state.Now.Add([]time.Duration{time.Minute, time.Hour, 25 * time.Hour, 31 * 24 * time.Hour}[w.rand.IntN(4)])
		say("time")
	case 7, 8:
		if s.Change != nil && s.Change.State == model.ChangeProposed && s.State == model.StepWaiting {
			s.State = model.StepRunning
			s.Change.State, s.Change.ApprovedDigest, s.Change.Missing = model.ChangeApproved, s.Change.EffectDigest, 0
			if w.rand.IntN(5) == 0 {
				s.Change.State, s.Change.DeniedBy = model.ChangeDenied, "ann"
			}
			say("decision on " + s.ID)
		}
	case 9:
		if w.rand.IntN(8) == 0 && !h.state.WorkflowState.Finished() {
			h.state.CancelRequested = true
			say("cancel " + h.id)
		}
	case 10:
		if s.State == model.StepFailed && h.state.WorkflowState == model.WorkflowFailed {
			s.State, s.Change, s.Run, s.Failed, s.Stale, s.Uncertain = model.StepPending, nil, nil, 0, 0, 0
			h.state.WorkflowState = model.WorkflowRunning
			say("retry " + s.ID)
		}
	default:
		w.work(h, s)
	}
}

// work is the runner's: it takes a job of the step, or reports one that it has.
func (w *world) work(h *history, s *flow.Step) {
	for _, j := range jobsOf(*s) {
		if j.State.Ended() {
			continue
		}
		if !h.taken[j.ID] {
			j.State, h.taken[j.ID] = model.JobLeased, true
			w.said = append(w.said, "claim "+j.ID)
			return
		}
		outcome := jobspec.OutcomeSucceeded
		if w.rand.IntN(6) == 0 {
			outcome = []jobspec.Outcome{jobspec.OutcomeFailed, jobspec.OutcomeStale, jobspec.OutcomeUncertain, jobspec.OutcomeRefused}[w.rand.IntN(4)]
		}
		j.State, j.Outcome = model.JobFailed, string(outcome)
		if outcome == jobspec.OutcomeSucceeded {
			j.State, j.NoChange = model.JobSucceeded, w.rand.IntN(4) == 0
		}
		w.said = append(w.said, fmt.Sprintf("%s ends %s", j.ID, outcome))
		return
	}
}

// rows are a workflow as package why looks at it.
func (w *world) rows(h *history) why.Input {
	in := why.Input{Workflow: ctldb.Workflow{ID: h.id, State: h.state.WorkflowState}, Install: "acme", Runner: &w.runner, MissingSecrets: w.state.MissingSecrets, Hold: w.hold(), Now: w.state.Now}
	in.Locks = why.Locks{SandboxID: "sandbox", Queue: w.queue()}
	for resource, change := range w.holders {
		in.Locks.Holders = append(in.Locks.Holders, ctldb.LockHoldersRow{ChangeID: change, ResourceID: resource, Step: resource, WorkflowID: "wfl", WorkflowKind: "deploy", CreatedBy: "ann", Since: now})
	}
	for _, s := range h.state.Steps {
		row := ctldb.Step{ID: s.ID, Name: s.Name, Kind: string(s.Kind), Needs: s.Needs, State: s.State}
		if s.ResourceID != "" {
			row.ResourceID = ptr(s.ResourceID)
		}
		if s.Change != nil {
			row.ChangeID = ptr(s.Change.ID)
		}
		if s.State == model.StepWaiting {
			row.WaitReason, row.WaitOn, row.WaitDeadline = ptr(s.WaitReason), ptr(s.WaitOn), ptr(s.WaitDeadline)
		}
		in.Steps = append(in.Steps, row)
		for _, j := range jobsOf(s) {
			in.Jobs = append(in.Jobs, ctldb.JobsOfWorkflowRow{ID: j.ID, StepID: ptr(s.ID), Operation: "apply", Mutates: s.Change != nil && j == s.Change.Apply, State: j.State, Attempt: 1, LeasedAt: &now, TimeoutSeconds: 60})
		}
	}
	return in
}

// check holds what the test is about, of a world at rest.
func (w *world) check(t *testing.T, seen map[why.Code]int) {
	t.Helper()
	for _, h := range w.workflows {
		in := w.rows(h)
		reasons := why.Workflow(in)
		if len(reasons) == 0 && !h.state.WorkflowState.Finished() {
			t.Errorf("%s is %s without a reason", h.id, h.state.WorkflowState)
		}
		for i, s := range in.Steps {
			of := why.Step(in, s.ID)
			if open := s.State == model.StepPending || s.State == model.StepRunning || s.State == model.StepWaiting; open && len(of) == 0 {
				t.Errorf("%s is %s without a reason", s.ID, s.State)
			}
			reasons = append(reasons, of...)
			w.checkTimes(t, h, h.state.Steps[i])
		}
		for _, j := range in.Jobs {
			of := why.Job(in, "job", j)
			if !j.State.Ended() && len(of) == 0 {
				t.Errorf("%s is %s without a reason", j.ID, j.State)
			}
			reasons = append(reasons, of...)
		}
		for _, r := range reasons {
			seen[r.Code]++
			if r.What == "" || r.Reason == "" || r.On == "" || !slices.Contains(why.Codes, r.Code) || !slices.Contains(why.Whos, r.Who) || r.WokenBy == "" && r.Deadline == nil {
				t.Errorf("%s: %+v leaves something out", h.id, r)
			}
			if r.Code == why.CodeControlPlane {
				t.Errorf("%s: nothing happens by itself any more, and %+v says that it does", h.id, r)
			}
			if r.Code == why.CodeLock && (len(r.Queue) == 0 || len(r.Holders) == 0 && len(r.Queue) < 2) {
				t.Errorf("%s: %+v does not name the queue", h.id, r)
			}
		}
	}
}

// checkTimes holds that a waiting step's deadline and retry lie ahead, and that something is to be
// done when they come.
func (w *world) checkTimes(t *testing.T, h *history, s flow.Step) {
	t.Helper()
	if s.State != model.StepWaiting || h.state.WorkflowState.Finished() {
		return
	}
	then := w.of(h)
	for name, at := range map[string]time.Time{"deadline": s.WaitDeadline, "retry": s.WaitRetryAt} {
		if name == "retry" && at.IsZero() {
			continue
		}
		if then.Now = at; !at.After(w.state.Now) || flow.Next(then).Do == flow.DoNothing {
			t.Errorf("%s waits for %s; its %s is %s, now it is %s, and then there is nothing to do", s.ID, s.WaitReason, name, at, w.state.Now)
		}
	}
}
