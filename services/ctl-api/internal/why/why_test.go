package why_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berth-dev/berth/services/ctl-api/internal/why"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func ptr[T any](v T) *T { return &v }

// Whatever is not finished says why, and on whom it waits.
func TestEveryOpenStateHasAReason(t *testing.T) {
	t.Parallel()
	for _, state := range []model.WorkflowState{model.WorkflowQueued, model.WorkflowRunning, model.WorkflowWaiting} {
		for _, step := range []model.StepState{"", model.StepPending, model.StepRunning, model.StepWaiting, model.StepFailed} {
			in := why.Input{Workflow: ctldb.Workflow{ID: "wfl_1", State: state}, Now: now}
			if step != "" {
				in.Steps = []ctldb.Step{{ID: "stp_1", Name: "sandbox", State: step, WaitReason: ptr(model.WaitLock), WaitOn: ptr("chg_1"), WaitDeadline: &now}}
			}
			reasons := why.Workflow(in)
			if len(reasons) == 0 {
				t.Errorf("a workflow that is %s with a step that is %q has no reason", state, step)
			}
			for _, r := range reasons {
				if r.What == "" || r.Reason == "" || r.On == "" {
					t.Errorf("workflow %s, step %q: reason %+v leaves out what, why or on whom", state, step, r)
				}
			}
		}
	}
}

func TestWhy(t *testing.T) {
	t.Parallel()
	deadline := now.Add(time.Hour)
	running := ctldb.Step{ID: "stp_1", Name: "component/api", State: model.StepRunning}
	job := func(state model.JobState) []ctldb.JobsOfWorkflowRow {
		return []ctldb.JobsOfWorkflowRow{{ID: "job_1", StepID: ptr("stp_1"), Operation: "plan", State: state, Attempt: 2}}
	}
	online := &ctldb.Runner{LastSeenAt: ptr(now.Add(-10 * time.Second))}
	troubled := &ctldb.Runner{LastSeenAt: online.LastSeenAt, Facts: []byte(`{"hostname":"a","problem":"disk full: /data"}`)}
	disputed := &ctldb.Runner{LastSeenAt: online.LastSeenAt, Facts: troubled.Facts, DisputedSince: ptr(now.Add(-time.Hour)), DisputedReason: ptr("none before it was named")}
	paused := &ctldb.Runner{LastSeenAt: online.LastSeenAt, Switch: "pause", SwitchReason: ptr("change freeze"), SwitchSince: ptr(now.Add(-time.Hour))}
	readOnly := &ctldb.Runner{LastSeenAt: online.LastSeenAt, Switch: "read_only"}
	mutating := job(model.JobQueued)
	mutating[0].Operation, mutating[0].Mutates = "apply", true
	askCustomer := "ask the customer to set the runner's switch to run"
	tests := []struct {
		name string
		in   why.Input
		want why.Reason
	}{
		{name: "the customer's switch, since when and why", in: why.Input{Steps: []ctldb.Step{running}, Jobs: job(model.JobQueued), Runner: paused},
			want: why.Reason{What: "component/api", ID: "job_1", Reason: "its plan is queued, and the customer's switch is at pause since 2026-11-21T11:00:00Z: change freeze",
				On: "the customer", Unblock: askCustomer}},
		{name: "a switch that lets plans pass", in: why.Input{Steps: []ctldb.Step{running}, Jobs: job(model.JobQueued), Runner: readOnly},
			want: why.Reason{What: "component/api", ID: "job_1", Reason: "its plan is queued for the runner", On: "the runner"}},
		{name: "and no apply", in: why.Input{Steps: []ctldb.Step{running}, Jobs: mutating, Runner: readOnly},
			want: why.Reason{What: "component/api", ID: "job_1", Reason: "its apply is queued, and the customer's switch is at read_only", On: "the customer", Unblock: askCustomer}},
		{name: "what gave way to a newer request needs nobody", in: why.Input{
			Steps: []ctldb.Step{{ID: "stp_1", Name: "component/api", State: model.StepFailed, Error: ptr("superseded by chg_2")}}, Superseded: map[string]bool{"stp_1": true}},
			want: why.Reason{What: "component/api", ID: "stp_1", Reason: "superseded by chg_2", On: "nobody"}},
		{name: "a disputed runner gets nothing", in: why.Input{Steps: []ctldb.Step{running}, Jobs: job(model.JobQueued), Runner: disputed},
			want: why.Reason{What: "component/api", ID: "job_1", Reason: "its plan is queued and nothing is given to the runner: the runner is disputed since " +
				now.Add(-time.Hour).UTC().Format(time.RFC3339) + ": two processes hold its key (none before it was named); it gets no work until another machine takes its place: " +
				"berth-runner replace --recovery FILE", On: "the customer", Unblock: "berth-runner replace --recovery FILE, on another machine"}},
		{name: "a decision names the component in the command",
			in:   why.Input{Steps: []ctldb.Step{{ID: "stp_1", Name: "component/api", ResourceID: ptr("res_1"), State: model.StepWaiting, WaitReason: ptr(model.WaitDecision), WaitOn: ptr("chg_1"), WaitDeadline: &deadline}}},
			want: why.Reason{What: "component/api", ID: "chg_1", Reason: "its change is planned and needs a decision", On: "an approver", Deadline: &deadline, Unblock: "berth approve acme/api"}},
		{name: "a failed step offers its retry",
			in:   why.Input{Steps: []ctldb.Step{{ID: "stp_1", Name: "component/api", ResourceID: ptr("res_1"), State: model.StepFailed, Error: ptr("boom")}}},
			want: why.Reason{What: "component/api", ID: "stp_1", Reason: "boom", On: "operator", Unblock: "berth retry acme/api"}},
		{name: "so does a failed check", in: why.Input{Steps: []ctldb.Step{{ID: "stp_1", Name: "check/up", Action: ptr("up"), State: model.StepFailed, Error: ptr("boom")}}},
			want: why.Reason{What: "check/up", ID: "stp_1", Reason: "boom", On: "operator", Unblock: "berth retry acme/up"}},
		{name: "a step about no component is retried by the install", in: why.Input{Steps: []ctldb.Step{{ID: "stp_1", Name: "runner", State: model.StepFailed, Error: ptr("boom")}}},
			want: why.Reason{What: "runner", ID: "stp_1", Reason: "boom", On: "operator", Unblock: "berth retry acme"}},
		{name: "what another change holds shows that change", in: why.Input{Steps: []ctldb.Step{{ID: "stp_1", Name: "component/api", State: model.StepWaiting, WaitReason: ptr(model.WaitLock), WaitOn: ptr("chg_9")}}},
			want: why.Reason{What: "component/api", ID: "stp_1", Reason: "change chg_9 holds the resource, or is before it in the queue", Unblock: "berth why chg_9", On: "chg_9"}},
		{name: "a leased job is being worked on", in: why.Input{Steps: []ctldb.Step{running}, Jobs: job(model.JobLeased), Runner: online},
			want: why.Reason{What: "component/api", ID: "job_1", Reason: "its plan is being worked on, attempt 2", On: "the runner"}},
		{name: "a queued job at a living runner", in: why.Input{Steps: []ctldb.Step{running}, Jobs: job(model.JobQueued), Runner: online},
			want: why.Reason{What: "component/api", ID: "job_1", Reason: "its plan is queued for the runner", On: "the runner"}},
		{name: "a queued job at a silent runner says so", in: why.Input{Steps: []ctldb.Step{running}, Jobs: job(model.JobQueued), Runner: &ctldb.Runner{LastSeenAt: ptr(now.Add(-time.Hour))}},
			want: why.Reason{What: "component/api", ID: "job_1", Reason: "its plan is queued and the runner is not heard of since 2026-11-21T11:00:00Z", On: "the runner", Unblock: "start the runner, or read its log"}},
		{name: "a runner that takes no work says why", in: why.Input{Steps: []ctldb.Step{running}, Jobs: job(model.JobQueued), Runner: troubled},
			want: why.Reason{What: "component/api", ID: "job_1", Reason: "its plan is queued and the runner takes no work: disk full: /data", On: "the runner",
				Unblock: "look after the runner's machine; `berth-runner status` there shows the same"}},
		{name: "and also while it works", in: why.Input{Steps: []ctldb.Step{running}, Jobs: job(model.JobLeased), Runner: troubled},
			want: why.Reason{What: "component/api", ID: "job_1", Reason: "its plan is being worked on, attempt 2; the runner says: disk full: /data", On: "the runner"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.in.Install, tt.in.Workflow, tt.in.Now = "acme", ctldb.Workflow{ID: "wfl_1", State: model.WorkflowRunning}, now
			if diff := cmp.Diff([]why.Reason{tt.want}, why.Workflow(tt.in), cmpopts.IgnoreFields(why.Reason{}, "Code", "Who", "WokenBy")); diff != "" {
				t.Errorf("reasons differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhyNotAccepted(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		state    model.InstallState
		scripts  int
		accepted bool
		want     int
	}{
		{"a live install from before", "live", 2, false, 1},
		{"one that accepted a release", "live", 2, true, 0},
		{"one without scripts", "live", 0, false, 0},
		{"one that is being made", "provisioning", 2, false, 0},
	} {
		got := why.NotAccepted(ctldb.Install{Name: "acme", State: tc.state}, tc.scripts, tc.accepted)
		if len(got) != tc.want || tc.want == 1 && got[0].Unblock != "berth deploy acme" {
			t.Errorf("%s: %+v", tc.name, got)
		}
	}
	held := ctldb.Step{Name: "component/api", State: model.StepWaiting, WaitReason: ptr(model.WaitRelease), WaitOn: new("chg_1")}
	if got := why.Workflow(why.Input{Install: "acme", Steps: []ctldb.Step{held}}); len(got) != 1 || got[0].Unblock != "berth approve acme" {
		t.Errorf("a step that waits for the release: %+v", got)
	}
	other := ctldb.Step{Name: "action/seed", State: model.StepWaiting, WaitReason: ptr(model.WaitDecision), WaitOn: new("chg_2")}
	if got := why.Workflow(why.Input{Install: "acme", Steps: []ctldb.Step{held, other}}); len(got) != 2 || got[0].Unblock != "berth approve chg_1" || got[1].Unblock != "berth approve acme" {
		t.Errorf("two that share a name: %+v", got)
	}
}

func TestHeld(t *testing.T) {
	t.Parallel()
	online := ptr(now.Add(-time.Second))
	paused := &ctldb.Runner{LastSeenAt: online, Switch: "pause"}
	jobs := func(state model.JobState) []ctldb.JobsOfWorkflowRow { return []ctldb.JobsOfWorkflowRow{{State: state}} }
	for _, tc := range []struct {
		name string
		in   why.Input
		want string
	}{
		{"paused", why.Input{Jobs: jobs(model.JobQueued), Runner: paused}, "the customer's switch is at pause"},
		{"paused, and nothing is queued", why.Input{Jobs: jobs(model.JobLeased), Runner: paused}, ""},
		{"silent", why.Input{Jobs: jobs(model.JobQueued), Runner: &ctldb.Runner{LastSeenAt: ptr(now.Add(-time.Hour))}}, "the runner is offline"},
		{"in trouble", why.Input{Jobs: jobs(model.JobQueued), Runner: &ctldb.Runner{LastSeenAt: online, Facts: []byte(`{"problem":"disk full"}`)}}, "disk full"},
		{"well", why.Input{Jobs: jobs(model.JobQueued), Runner: &ctldb.Runner{LastSeenAt: online}}, ""},
		{"the workflow is over", why.Input{Workflow: ctldb.Workflow{State: model.WorkflowCancelled}, Jobs: jobs(model.JobQueued), Runner: paused}, ""},
	} {
		tc.in.Now = now
		if got := why.Held(tc.in); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// Each state of a step, its job and its runner has its code, and the code who can end it.
func TestCodes(t *testing.T) {
	t.Parallel()
	online := ctldb.Runner{LastSeenAt: ptr(now), Switch: "run"}
	runner := func(change func(*ctldb.Runner)) *ctldb.Runner {
		r := online
		change(&r)
		return &r
	}
	waits := func(reason model.WaitReason) ctldb.Step {
		return ctldb.Step{ID: "stp", State: model.StepWaiting, WaitReason: &reason, WaitOn: ptr("chg_9"), WaitDeadline: &now}
	}
	for _, tc := range []struct {
		step   ctldb.Step
		job    model.JobState
		runner *ctldb.Runner
		code   why.Code
		who    why.Who
	}{
		{step: waits(model.WaitDecision), code: why.CodeDecision, who: why.Approver},
		{step: waits(model.WaitRelease), code: why.CodeRelease, who: why.Approver},
		{step: waits(model.WaitLock), code: why.CodeLock, who: why.AnotherChange},
		{step: waits(model.WaitStack), code: why.CodeStack, who: why.Customer},
		{step: waits(model.WaitRunner), code: why.CodeEnrolment, who: why.TheRunner},
		{step: waits(model.WaitSecret), code: why.CodeSecret, who: why.Customer},
		{step: ctldb.Step{State: model.StepFailed}, code: why.CodeFailed, who: why.Operator},
		{step: ctldb.Step{State: model.StepRunning}, code: why.CodeControlPlane, who: why.ControlPlane},
		{job: model.JobQueued, runner: &online, code: why.CodeRunnerQueue, who: why.TheRunner},
		{job: model.JobQueued, runner: nil, code: why.CodeRunnerOffline, who: why.TheRunner},
		{job: model.JobQueued, runner: runner(func(r *ctldb.Runner) { r.Switch = "pause" }), code: why.CodeSwitch, who: why.Customer},
		{job: model.JobQueued, runner: runner(func(r *ctldb.Runner) { r.DisputedSince = &now }), code: why.CodeRunnerDisputed, who: why.Customer},
		{job: model.JobQueued, runner: runner(func(r *ctldb.Runner) { r.Facts = []byte(`{"problem":"disk full"}`) }), code: why.CodeRunnerProblem, who: why.TheRunner},
		{job: model.JobLeased, runner: &online, code: why.CodeAtWork, who: why.TheRunner},
		{job: model.JobLeased, runner: runner(func(r *ctldb.Runner) { r.LastSeenAt = ptr(now.Add(-time.Hour)) }), code: why.CodeRunnerOffline, who: why.TheRunner},
	} {
		in := why.Input{Workflow: ctldb.Workflow{State: model.WorkflowRunning}, Runner: tc.runner, Now: now, Steps: []ctldb.Step{tc.step}}
		if tc.job != "" {
			in.Steps = []ctldb.Step{{ID: "stp", State: model.StepRunning}}
			in.Jobs = []ctldb.JobsOfWorkflowRow{{ID: "job", StepID: ptr("stp"), State: tc.job, Operation: "plan"}}
		}
		got := why.Workflow(in)
		if len(got) != 1 || got[0].Code != tc.code || got[0].Who != tc.who || got[0].WokenBy == "" {
			t.Errorf("%+v, want %s and %s", got, tc.code, tc.who)
		}
	}
}

// Who waits for a resource is told who has it and all who want it; a change of the sandbox is in
// the way of every component, one of another component is not.
func TestTheWholeQueueIsNamed(t *testing.T) {
	t.Parallel()
	holder := func(change, resource string) ctldb.LockHoldersRow {
		return ctldb.LockHoldersRow{ChangeID: change, ResourceID: resource, Step: "component/" + resource, WorkflowKind: "deploy", CreatedBy: "ann", Since: now}
	}
	turn := func(change, resource string) ctldb.LockQueueRow {
		return ctldb.LockQueueRow{ChangeID: change, ResourceID: resource, Step: "component/" + resource, WorkflowKind: "deploy", CreatedBy: "bob", Since: now, WaitsFor: "chg_h"}
	}
	locks := why.Locks{
		SandboxID: "sb",
		Holders:   []ctldb.LockHoldersRow{holder("chg_h", "api"), holder("chg_other", "db")},
		Queue:     []ctldb.LockQueueRow{turn("chg_1", "api"), turn("chg_2", "sb"), turn("chg_3", "db"), turn("chg_4", "api")},
	}
	step := ctldb.Step{ID: "stp", Name: "component/api", State: model.StepWaiting, WaitReason: ptr(model.WaitLock), WaitOn: ptr("chg_h"), ResourceID: ptr("api"), ChangeID: ptr("chg_4")}
	got := why.Workflow(why.Input{Steps: []ctldb.Step{step}, Locks: locks, Now: now})[0]
	changes := func(turns []why.Turn) (ids []string) {
		for _, turn := range turns {
			ids = append(ids, turn.Change)
		}
		return ids
	}
	if diff := cmp.Diff([][]string{{"chg_h"}, {"chg_1", "chg_2", "chg_4"}}, [][]string{changes(got.Holders), changes(got.Queue)}); diff != "" {
		t.Errorf("holders and queue (-want +got):\n%s", diff)
	}
	want := "change chg_h (component/api, deploy by ann) holds the resource; number 3 of 3 in the queue"
	if got.Reason != want || got.Unblock != "berth why chg_h" {
		t.Errorf("reason %q, unblock %q; want %q", got.Reason, got.Unblock, want)
	}
	holders, queue := locks.Around("sb")
	if len(holders) != 2 || len(queue) != 4 {
		t.Errorf("around the sandbox are %v and %v, want all", holders, queue)
	}
}
