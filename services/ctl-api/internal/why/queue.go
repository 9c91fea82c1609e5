package why

import (
	"cmp"
	"fmt"
	"time"

	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Locks is who holds the resources of an install and who waits for them, the next one
// first, as the queries LockHolders and LockQueue answer it.
type Locks struct {
	SandboxID string // the resource that excludes all others; empty without one
	Holders   []ctldb.LockHoldersRow
	Queue     []ctldb.LockQueueRow
}

// Around is the whole queue that a change of a resource is in: who holds what excludes
// it, and all who wait for that, the change itself included.
func (l Locks) Around(resource string) (holders, queue []Turn) {
	excludes := func(other string) bool {
		return other == resource || l.SandboxID != "" && (other == l.SandboxID || resource == l.SandboxID)
	}
	for _, h := range l.Holders {
		if excludes(h.ResourceID) {
			holders = append(holders, Turn{Change: h.ChangeID, Step: h.Step, Workflow: h.WorkflowID, WorkflowKind: h.WorkflowKind, By: h.CreatedBy, Since: h.Since})
		}
	}
	for _, q := range l.Queue {
		if excludes(q.ResourceID) {
			queue = append(queue, Turn{
				Change: q.ChangeID, Step: q.Step, Workflow: q.WorkflowID, WorkflowKind: q.WorkflowKind, By: q.CreatedBy, Since: q.Since, WaitsFor: q.WaitsFor,
			})
		}
	}
	return holders, queue
}

// locked explains a step that waits for its turn.
func (in Input) locked(step ctldb.Step, r *Reason) {
	on := optional.Value(step.WaitOn)
	r.is(facts{CodeLock, AnotherChange, WakeChange})
	r.Reason, r.Unblock = fmt.Sprintf("change %s holds the resource, or is before it in the queue", on), "berth why "+on
	if step.ResourceID == nil {
		return
	}
	r.Holders, r.Queue = in.Locks.Around(*step.ResourceID)
	place := 0
	for i, q := range r.Queue {
		if q.Change == optional.Value(step.ChangeID) {
			place = i + 1
		}
	}
	text := func(t Turn) string {
		return fmt.Sprintf("change %s (%s, %s by %s)", t.Change, t.Step, t.WorkflowKind, cmp.Or(t.By, "somebody"))
	}
	switch {
	case len(r.Holders) > 0:
		r.Reason = text(r.Holders[0]) + " holds the resource"
		if more := len(r.Holders) - 1; more > 0 {
			r.Reason += fmt.Sprintf(", and %d more", more)
		}
	case place > 1:
		r.Reason = text(r.Queue[0]) + " is before it in the queue"
	}
	if place > 0 && len(r.Queue) > 1 {
		r.Reason += fmt.Sprintf("; number %d of %d in the queue", place, len(r.Queue))
	}
}

// Step explains one step, whatever it is at; nothing for one that ended well. One that has
// not begun is explained by the steps before it, down to what holds those.
func Step(in Input, id string) []Reason {
	for _, step := range in.Steps {
		if step.ID == id {
			return in.step(step, map[string]bool{})
		}
	}
	return nil
}

func (in Input) step(step ctldb.Step, seen map[string]bool) []Reason {
	if seen[step.ID] {
		return nil
	}
	seen[step.ID] = true
	switch step.State {
	case model.StepWaiting:
		return []Reason{in.waitingReason(step)}
	case model.StepFailed:
		return []Reason{in.failedReason(step)}
	case model.StepRunning:
		return []Reason{in.runningReason(step)}
	case model.StepPending:
		return in.pending(step, seen)
	}
	return nil
}

// pending explains a step that has not begun.
func (in Input) pending(step ctldb.Step, seen map[string]bool) []Reason {
	r := Reason{What: step.Name, ID: step.ID, On: "ctl-api", Reason: "it is about to be looked at"}
	r.is(facts{CodeControlPlane, ControlPlane, WakeQueue})
	var behind []Reason
	for _, other := range in.Steps {
		ended := other.State == model.StepSucceeded || other.State == model.StepSkipped
		if other.ID == step.ID || ended || !needs(step, other.Name) {
			continue
		}
		if r.Code != CodeNeeds {
			r.is(facts{CodeNeeds, Nobody, WakeStep})
			r.Reason, r.On = "it begins after "+other.Name, "nobody"
		} else {
			r.Reason += ", " + other.Name
		}
		if of := in.step(other, seen); other.State != model.StepPending {
			behind = append(behind, of...)
		} else if len(of) > 1 { // what holds that one; that it waits is said by its name
			behind = append(behind, of[1:]...)
		}
	}
	if in.Workflow.State.Finished() {
		r.is(facts{CodeFailed, Operator, WakeRequest})
		r.Reason, r.On, r.Unblock = "it was not attempted: its workflow is "+string(in.Workflow.State), "operator", "berth retry "+in.Install
		if in.Workflow.State != model.WorkflowFailed {
			r.Unblock = ""
		}
		return append([]Reason{r}, behind...)
	}
	if failed := in.failed(); failed != "" {
		r.is(facts{CodeNeeds, Operator, WakeRequest})
		r.Reason, r.On, r.Unblock = failed+" failed, so nothing new begins in the workflow", "operator", "berth retry "+in.Install
		return append([]Reason{r}, behind...)
	}
	if len(behind) > 0 {
		r.Who, r.On = behind[0].Who, behind[0].On
	}
	return append([]Reason{r}, behind...)
}

// failed is the name of a step that failed.
func (in Input) failed() string {
	for _, step := range in.Steps {
		if step.State == model.StepFailed {
			return step.Name
		}
	}
	return ""
}

func needs(step ctldb.Step, name string) bool {
	for _, n := range step.Needs {
		if n == name {
			return true
		}
	}
	return false
}

// Job explains one job that has not ended; nothing for one that has.
func Job(in Input, what string, j ctldb.JobsOfWorkflowRow) []Reason {
	if j.State != model.JobQueued && j.State != model.JobLeased {
		return nil
	}
	r := Reason{What: what}
	in.jobReason(&r, j)
	return []Reason{r}
}

// Scheduled explains a run that the runner's own scheduler started.
func Scheduled(in Input, run ctldb.ActionRun) []Reason {
	if run.State != model.RunQueued && run.State != model.RunRunning {
		return nil
	}
	r := Reason{What: "action " + run.Action, ID: run.ID, On: "the runner", Reason: "the runner is at it, by its own schedule"}
	r.is(facts{CodeAtWork, TheRunner, WakeRunner})
	if run.State == model.RunQueued && run.Error != nil { // as the runner says it
		r.Reason = "its tick has come, and it is " + *run.Error
	}
	if in.offline() {
		r.is(facts{CodeRunnerOffline, TheRunner, WakeRunner})
		r.Reason, r.Unblock = "the runner began it and "+in.silent(), "start the runner, or read its log"
	}
	return []Reason{r}
}

func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339) }
