package follow_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/changes"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/goldentest"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/visible"
)

var now = time.Date(2026, 11, 20, 10, 1, 0, 0, time.UTC)

func ago(d time.Duration) *time.Time { t := now.Add(-d); return &t }

func ptr[T any](v T) *T { return &v }

func golden(t *testing.T, file string, lines []string) {
	t.Helper()
	var shown strings.Builder
	_, _ = visible.NewWriter(&shown).Write([]byte(strings.Join(lines, "\n") + "\n")) // as a command does
	goldentest.File(t, file, shown.String())
}

func workflow() ctlapi.Workflow {
	proposed := &ctlapi.ChangeSummary{ID: "chg_2", State: ctlapi.ChangeStateProposed, Counts: &ctlapi.PlanCounts{Update: 2}}
	return ctlapi.Workflow{
		ID: "wfl_1", Install: ctlapi.Ref{Name: "acme"}, Kind: ctlapi.WorkflowKindDeploy, State: ctlapi.WorkflowStateWaiting, StartedAt: ago(42 * time.Second),
		Steps: []ctlapi.Step{
			{Name: "sandbox", State: ctlapi.StepStateSucceeded, StartedAt: ago(41 * time.Second), FinishedAt: ago(39 * time.Second),
				Change: &ctlapi.ChangeSummary{State: ctlapi.ChangeStateNoChange, Counts: &ctlapi.PlanCounts{NoChange: true}}},
			{Name: "component/api", State: ctlapi.StepStateWaiting, StartedAt: ago(30 * time.Second), Change: proposed, Wait: &ctlapi.Waiting{Reason: "decision"}},
			{Name: "component/db", State: ctlapi.StepStateRunning, StartedAt: ago(5 * time.Second), Change: &ctlapi.ChangeSummary{State: ctlapi.ChangeStateExecuting},
				Progress: &ctlapi.StepProgress{What: "aws_db_instance.main", Doing: "creating", StartedAt: *ago(4 * time.Second), ReportedAt: *ago(time.Second), Done: 4, Total: 12}},
			{Name: "component/gone", State: ctlapi.StepStateFailed, StartedAt: ago(5 * time.Minute), FinishedAt: ago(time.Minute), Error: ptr("terraform apply:\nexit status 1")},
			{Name: "component/off", State: ctlapi.StepStateSkipped},
			{Name: "check/answers", State: ctlapi.StepStatePending},
		},
	}
}

func TestTree(t *testing.T) {
	t.Parallel()
	golden(t, "testdata/tree.txt", follow.Tree(workflow(), now, false))
	golden(t, "testdata/tree_in_color.txt", follow.Tree(workflow(), now, true))
}

// What was cancelled, what gave way and what waits for the runner say so.
func TestTreeOfWhatDidNotGoOn(t *testing.T) {
	t.Parallel()
	w := workflow()
	w.Held = ptr("the customer's switch is at pause since 2026-11-20T09:00:00Z: change freeze")
	lines := follow.Tree(w, now, false)
	w = workflow()
	w.State, w.FinishedAt = ctlapi.WorkflowStateCancelled, ago(time.Second)
	w.Steps[1].State, w.Steps[1].Change = ctlapi.StepStateCancelled, &ctlapi.ChangeSummary{Kind: ctlapi.ChangeKindDeploy, State: ctlapi.ChangeStateApplied, Counts: &ctlapi.PlanCounts{Update: 2}}
	w.Steps[2].State = ctlapi.StepStateCancelled
	w.Steps[3].Error, w.Steps[3].Change = ptr("superseded by chg_9 of the newer deploy wfl_9, which bob requested"), &ctlapi.ChangeSummary{State: ctlapi.ChangeStateSuperseded}
	golden(t, "testdata/tree_not_done.txt", append(append(lines, ""), follow.Tree(w, now, false)...))
}

// Who denies a change gets what they wanted: nothing is red, unless something else
// did fail.
func TestTreeOfDenial(t *testing.T) {
	t.Parallel()
	step := func(name string, change ctlapi.ChangeState, why string) ctlapi.Step {
		return ctlapi.Step{
			Name: name, State: ctlapi.StepStateFailed, StartedAt: ago(time.Minute), FinishedAt: ago(time.Second), Error: &why,
			Change: &ctlapi.ChangeSummary{State: change, ProposedAt: ago(58 * time.Second), DecidedAt: ago(time.Second)},
		}
	}
	w := workflow()
	w.State, w.FinishedAt = ctlapi.WorkflowStateFailed, ago(time.Second)
	w.Steps = []ctlapi.Step{w.Steps[0], step("component/api", ctlapi.ChangeStateDenied, "denied by ada: not before Monday"), {Name: "component/web", State: ctlapi.StepStateSkipped}}
	lines := append(follow.Tree(w, now, true), "")
	w.Steps = append(w.Steps, step("component/db", ctlapi.ChangeStateFailed, "exit status 1"))
	golden(t, "testdata/tree_of_denial.txt", append(lines, follow.Tree(w, now, true)...))
}

// Without a tree, what holds up the jobs is said once, and again when it changes.
func TestHeldLine(t *testing.T) {
	t.Parallel()
	pause := "the customer's switch is at pause since 2026-11-20T09:00:00Z: change freeze"
	w := workflow()
	w.Held = &pause
	at := now.Local().Format(time.TimeOnly)
	for _, tc := range []struct {
		name  string
		state ctlapi.WorkflowState
		said  string
		want  string
	}{
		{"held", ctlapi.WorkflowStateRunning, "", at + "  its jobs wait for the runner: " + pause},
		{"said before", ctlapi.WorkflowStateRunning, pause, ""},
		{"for another reason", ctlapi.WorkflowStateRunning, "the runner is offline", at + "  its jobs wait for the runner: " + pause},
		{"finished", ctlapi.WorkflowStateCancelled, "", ""},
	} {
		w.State = tc.state
		if got := follow.HeldLine(w, tc.said, now); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	w.Held, w.State = nil, ctlapi.WorkflowStateRunning
	if got := follow.HeldLine(w, pause, now); got != "" {
		t.Errorf("held by nothing: %q", got)
	}
}

func TestTreeOfPreview(t *testing.T) {
	t.Parallel()
	step := func(name string, counts ctlapi.PlanCounts, may ...ctlapi.MayChange) ctlapi.Step {
		return ctlapi.Step{
			Name: name, State: ctlapi.StepStateSucceeded, StartedAt: ago(3 * time.Second), FinishedAt: ago(time.Second),
			Change: &ctlapi.ChangeSummary{State: ctlapi.ChangeStatePlanned, Counts: &counts}, MayChange: may,
		}
	}
	w := workflow()
	w.PlanOnly, w.State = true, ctlapi.WorkflowStateSucceeded
	w.Steps = []ctlapi.Step{
		step("component/greeting", ctlapi.PlanCounts{Update: 1}),
		step("component/card", ctlapi.PlanCounts{NoChange: true}, ctlapi.MayChange{Reads: "greeting.text"}, ctlapi.MayChange{Reads: "key"}),
		step("component/frame", ctlapi.PlanCounts{Create: 2}, ctlapi.MayChange{Reads: "card.width"}),
		{Name: "component/new", State: ctlapi.StepStateSkipped, MayChange: []ctlapi.MayChange{
			{Reads: "greeting.text"}, {Reads: "greeting.size", Absent: true}, {Reads: "sandbox.dir", Absent: true},
		}},
	}
	golden(t, "testdata/tree_of_preview.txt", follow.Tree(w, now, false))
}

func TestOnlyDecisionsHelp(t *testing.T) {
	t.Parallel()
	step := func(s ctlapi.StepState, c ctlapi.ChangeState) ctlapi.Step {
		if c == "" {
			return ctlapi.Step{State: s}
		}
		return ctlapi.Step{State: s, Change: &ctlapi.ChangeSummary{State: c}}
	}
	proposed := step(ctlapi.StepStateWaiting, ctlapi.ChangeStateProposed)
	for _, tc := range []struct {
		name  string
		state ctlapi.WorkflowState
		steps []ctlapi.Step
		want  bool
	}{
		{"one proposal, nothing else", ctlapi.WorkflowStateWaiting, []ctlapi.Step{step(ctlapi.StepStateSucceeded, ""), proposed, step(ctlapi.StepStatePending, "")}, true},
		{"another step is at work", ctlapi.WorkflowStateWaiting, []ctlapi.Step{proposed, step(ctlapi.StepStateRunning, "")}, false},
		{"another step waits for a runner", ctlapi.WorkflowStateWaiting, []ctlapi.Step{proposed, step(ctlapi.StepStateWaiting, "")}, false},
		{"decided, not yet taken up", ctlapi.WorkflowStateWaiting, []ctlapi.Step{step(ctlapi.StepStateWaiting, ctlapi.ChangeStateApproved)}, false},
		{"the workflow has not looked yet", ctlapi.WorkflowStateRunning, []ctlapi.Step{proposed}, false},
		{"finished", ctlapi.WorkflowStateSucceeded, []ctlapi.Step{step(ctlapi.StepStateSucceeded, ctlapi.ChangeStateApplied)}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if follow.OnlyDecisionsHelp(ctlapi.Workflow{State: tc.state, Steps: tc.steps, ApproveAll: true}) {
				t.Error("although everything was approved beforehand")
			}
			if got := follow.OnlyDecisionsHelp(ctlapi.Workflow{State: tc.state, Steps: tc.steps}); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, kind, body, want string }{
		{"step", "step", `{"step":"component/api","state":"running"}`, "component/api: running"},
		{"step that waits", "step", `{"step":"component/api","state":"waiting","wait":{"reason":"needs a decision"}}`, "component/api: waiting, needs a decision"},
		{"step that failed", "step", `{"step":"component/api","state":"failed","error":"exit\nstatus 1"}`, "component/api: failed, exit status 1"},
		{"change", "change", `{"change_id":"chg_1","step":"sandbox","state":"no_change"}`, "sandbox: change chg_1: no change"},
		{"workflow", "workflow", `{"state":"running"}`, "workflow running"},
		{"approve all", "workflow", `{"approve_all":true,"actor":"ada"}`, "all changes approved by ada"},
		{"retry", "step", `{"step":"sandbox","state":"pending","retried_by":"ada"}`, "sandbox retried by ada"},
		{"job", "job", `{"job_id":"job_1","step":"sandbox"}`, ""},
		{"of a later version", "weather", `{"state":"rain"}`, ""},
		{"not an object", "step", `[]`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := new(follow.Teller).Line(api.Event{At: now, Kind: tc.kind, Body: json.RawMessage(tc.body)})
			if tc.want != "" {
				tc.want = now.Local().Format(time.TimeOnly) + "  " + tc.want
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// A log of a deploy says why a change failed, and not again why its step did.
func TestWhatFailedIsToldOnce(t *testing.T) {
	t.Parallel()
	var teller follow.Teller
	var lines []string
	for _, e := range []struct{ kind, body string }{
		{"change", `{"change_id":"chg_1","step":"component/api","state":"failed","error":"terraform apply of component api: no room"}`},
		{"step", `{"step":"component/api","state":"failed","error":"terraform apply of component api: no room"}`},
		{"step", `{"step":"component/web","state":"failed","error":"no runner"}`},
		{"workflow", `{"state":"failed","error":"step component/api failed"}`},
	} {
		_, line, _ := strings.Cut(teller.Line(api.Event{At: now, Kind: e.kind, Body: json.RawMessage(e.body)}), "  ")
		lines = append(lines, line)
	}
	want := []string{"component/api: change chg_1: failed, no room", "component/api: failed", "component/web: failed, no runner", "workflow failed, step component/api failed"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestScreenDrawsOverItsBlockOnly(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := follow.Screen{W: visible.NewWriter(&out), Terminal: true, Columns: 8}
	s.Draw([]string{"one", output.Paint(true, output.Good, "longer than eight"), output.Paint(true, output.Good, "fits but")})
	s.Draw([]string{"one"})
	s.Print("stays")
	s.Draw([]string{"two"})
	s.Clear()
	want := "one\n\x1b[32mlonger …\x1b[0m\n\x1b[32mfits but\x1b[0m\n" + "\x1b[3A\x1b[Jone\n" + "\x1b[1A\x1b[Jstays\n" + "two\n" + "\x1b[1A\x1b[J"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("written (-want +got):\n%q", diff)
	}
	out.Reset()
	plain := follow.Screen{W: &out}
	plain.Draw([]string{"block"})
	plain.Print("line")
	if out.String() != "line\n" {
		t.Errorf("without a terminal: %q", out.String())
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 0: "0.0 s", 1500 * time.Millisecond: "1.5 s", 42 * time.Second: "42 s",
		5 * time.Minute: "5 min", 3 * time.Hour: "3 h", 72 * time.Hour: "3 d",
	} {
		if got := follow.Duration(d); got != want {
			t.Errorf("%s: got %q, want %q", d, got, want)
		}
	}
}

func TestChangeLines(t *testing.T) {
	t.Parallel()
	change := ctlapi.Change{
		ID: "chg_7", Kind: ctlapi.ChangeKindDeploy, Install: ctlapi.Ref{Name: "acme"},
		Resource: &ctlapi.ResourceRef{Kind: ctlapi.ResourceRefKindComponent, Name: "api"},
		Plan: &ctlapi.PlanSummary{
			Create: 1, Update: 1, Replace: 1, Delete: 1,
			Objects: []ctlapi.ObjectChange{
				{Address: "terraform_data.new", Action: "create", Fields: []ctlapi.FieldChange{{Path: "input", After: `"Ahoy"`}}},
				{Address: "terraform_data.old", Action: "update", Fields: []ctlapi.FieldChange{{Path: "input", Before: `"Hello"`, After: `"Ahoy"`}, {Path: "note", Before: `"x"`}}},
				{Address: "terraform_data.swap", Action: "replace", Reason: "cannot update"},
				{Address: "terraform_data.gone", Action: "delete"},
			},
			Outputs: []ctlapi.FieldChange{{Path: "text", Before: "(sensitive)", After: "(sensitive)"}},
		},
		Differs: []ctlapi.Difference{{Field: "artifact_digest", Want: "sha256:a", Got: "sha256:b"}},
	}
	golden(t, "testdata/change.txt", changes.Lines(change, changes.Options{Text: true}))
	removal := ctlapi.Change{ID: "chg_8", Kind: ctlapi.ChangeKindTeardown, Install: ctlapi.Ref{Name: "acme"},
		Resource: &ctlapi.ResourceRef{Kind: ctlapi.ResourceRefKindSandbox, Name: "sandbox"}}
	golden(t, "testdata/removal.txt", changes.Lines(removal, changes.Options{Text: true}))
}
