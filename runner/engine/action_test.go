package engine_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berth-dev/berth/pkg/jobspec"
)

func actionJob(t *testing.T, op jobspec.Operation, steps ...jobspec.ActionStep) *jobDir {
	t.Helper()
	return newJob(t, jobspec.Spec{
		Kind: jobspec.KindAction, Operation: op,
		Action: &jobspec.Action{Name: "check", Steps: steps, ReadOnly: op == jobspec.OperationRun},
		State: state(t, map[string]any{"id": "ins_1", "name": "acme", "components": map[string]any{
			"db": map[string]any{"outputs": map[string]any{"host": "db.internal"}},
		}}),
	})
}

func TestScriptsRunUnderBash(t *testing.T) {
	t.Parallel()
	const bashisms = "set -euo pipefail\na=(one two)\n[[ ${#a[@]} == 2 ]]\necho \"${a[1]}\" > \"$BERTH_INSTALL_DIR/$BERTH_STEP_NAME\"\n"
	steps := []jobspec.ActionStep{
		{Name: "env-sh", InlineContents: "#!/usr/bin/env sh\n" + bashisms},
		{Name: "bin-sh", InlineContents: "#!/bin/sh -e\n" + bashisms},
		{Name: "bash", InlineContents: "#!/bin/bash\n" + bashisms + "diff <(echo a) <(echo a)\n"},
		{Name: "none", InlineContents: bashisms},
		{Name: "nested", InlineContents: "#!/bin/sh\nsh -c 'a=(one two); echo ${a[1]}' > \"$BERTH_INSTALL_DIR/nested\""},
		{Name: "command", Command: `printf two > "$BERTH_INSTALL_DIR/command"`},
		{Name: "awk", InlineContents: "#!/usr/bin/awk -f\nBEGIN { print \"two\" > ENVIRON[\"BERTH_INSTALL_DIR\"] \"/awk\" }\n"},
	}
	j := actionJob(t, jobspec.OperationRun, steps...)
	r := j.must(t)
	if len(r.Steps) != len(steps) {
		t.Errorf("ran %d steps of %d", len(r.Steps), len(steps))
	}
	for _, s := range steps {
		data, err := os.ReadFile(filepath.Join(j.env["BERTH_INSTALL_DIR"], s.Name))
		if err != nil || strings.TrimSpace(string(data)) != "two" {
			t.Errorf("step %s wrote %q, %v", s.Name, data, err)
		}
	}
}

func TestScriptsSeeTheirEnvironment(t *testing.T) {
	t.Parallel()
	j := actionJob(t, jobspec.OperationRun, jobspec.ActionStep{
		Name: "env", InlineContents: "env > $BERTH_INSTALL_DIR/env; pwd >> $BERTH_INSTALL_DIR/env",
		EnvVars: map[string]string{"HOST": "{{ .nuon.components.db.outputs.host }}", "WHO": "{{ .action.inputs.who }}"},
	})
	j.spec.Action.Inputs = map[string]string{"who": "sailor"}
	j.env["AGENT_PRIVATE"] = "not for vendors"
	j.env["TF_HTTP_PASSWORD"] = "not for scripts"
	j.must(t)
	data, err := os.ReadFile(filepath.Join(j.env["BERTH_INSTALL_DIR"], "env"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"HOST=db.internal\n", "WHO=sailor\n", "who=sailor\n", "NUON_INSTALL_ID=ins_1\n", "BERTH_INSTALL_ID=ins_1\n", "BERTH_INSTALL_NAME=acme\n",
		"NUON_ORG_ID=org_1\n", "BERTH_ACTION_NAME=check\n", "NUON_STEP_NAME=env\n", "NUON_ACTIONS_OUTPUT_FILEPATH=" + j.path, "\n" + j.path + "/work/action\n",
	} {
		wantContains(t, "environment", string(data), want)
	}
	if strings.Contains(string(data), "not for") {
		t.Errorf("the environment holds what is the engine's own:\n%s", data)
	}
}

func TestScriptsReachTheClusterUnlessTheyDoWithout(t *testing.T) {
	t.Parallel()
	const script = "echo ${KUBECONFIG-none} >> $BERTH_INSTALL_DIR/kubeconfigs"
	steps := []jobspec.ActionStep{
		{Name: "with", InlineContents: script},
		{Name: "without", InlineContents: script, NoKubeConfig: true},
	}
	run := actionJob(t, jobspec.OperationRun, steps...)
	plan := actionJob(t, jobspec.OperationPlan, steps...)
	plan.must(t)
	apply := actionJob(t, jobspec.OperationApply, steps...)
	apply.write(t, "in/pinned/action.json", plan.read(t, "out/pinned/action.json"))
	for _, j := range []*jobDir{run, apply} {
		j.env["KUBECONFIG"] = "/job/in/kubeconfig"
		j.must(t)
		data, err := os.ReadFile(filepath.Join(j.env["BERTH_INSTALL_DIR"], "kubeconfigs"))
		if err != nil || string(data) != "/job/in/kubeconfig\nnone\n" {
			t.Errorf("%s: the scripts had %q, %v", j.spec.Operation, data, err)
		}
	}
}

func TestOutputsOfSteps(t *testing.T) {
	t.Parallel()
	j := actionJob(t, jobspec.OperationRun,
		jobspec.ActionStep{Name: "lines", InlineContents: "echo files=2 >> $BERTH_ACTIONS_OUTPUT_FILEPATH\necho 'url=https://x/?a=b' >> $NUON_ACTIONS_OUTPUT_FILEPATH"},
		jobspec.ActionStep{Name: "object", InlineContents: `echo '{"files": 3, "ok": true}' > $BERTH_ACTIONS_OUTPUT_FILEPATH`},
	)
	r := j.must(t)
	want := []jobspec.StepResult{
		{Name: "lines", Outputs: map[string]any{"files": "2", "url": "https://x/?a=b"}},
		{Name: "object", Outputs: map[string]any{"files": 3.0, "ok": true}},
	}
	if diff := cmp.Diff(want, r.Steps, cmpopts.IgnoreFields(jobspec.StepResult{}, "Took")); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	outputs := jobspec.Outputs{
		"files": {Value: json.RawMessage("3")}, "ok": {Value: json.RawMessage("true")}, "url": {Value: json.RawMessage(`"https://x/?a=b"`)},
	}
	var written jobspec.Outputs
	j.readJSON(t, "out/outputs.json", &written)
	if diff := cmp.Diff(outputs, written); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
}

// The error quotes what the script said last, and nothing else's words.
func TestLastWordsOfAScript(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 301)
	for script, want := range map[string]string{
		"exit 3": "",
		"echo it begins; echo no route >&2; exit 3": ": no route",
		"echo no route >&2; echo it ends; exit 3":   ": no route",
		"printf 'first\\nlast  \\n\\n'; exit 3":     ": last",
		"echo " + long + "; exit 3":                 "", // a part of it could not be redacted
	} {
		j := actionJob(t, jobspec.OperationRun,
			jobspec.ActionStep{Name: "before", InlineContents: "echo of the step before"}, jobspec.ActionStep{Name: "it", InlineContents: script})
		if r := j.run(t); r.Error != `action check: step "it" ended with exit code 3`+want {
			t.Errorf("%s: %q, want %q at its end", script, r.Error, want)
		}
	}
}

func TestFailedStepEndsTheAction(t *testing.T) {
	t.Parallel()
	j := actionJob(t, jobspec.OperationRun,
		jobspec.ActionStep{Name: "first", InlineContents: "echo a=1 >> $BERTH_ACTIONS_OUTPUT_FILEPATH"},
		jobspec.ActionStep{Name: "second", InlineContents: "echo told why; exit 7"},
		jobspec.ActionStep{Name: "third", InlineContents: "touch $BERTH_INSTALL_DIR/third"},
	)
	r := j.run(t)
	if r.Outcome != jobspec.OutcomeFailed || r.ExitCode != 7 || r.Error != `action check: step "second" ended with exit code 7: told why` || len(r.Steps) != 2 {
		t.Errorf("result %+v", r)
	}
	wantContains(t, "log", j.log(t), "told why\n")
	wantContains(t, "outputs", j.read(t, "out/outputs.json"), `"a"`)
	if _, err := os.Stat(filepath.Join(j.env["BERTH_INSTALL_DIR"], "third")); !os.IsNotExist(err) {
		t.Error("the third step ran")
	}
}

func TestBadOutputsFailTheStepWithoutTellingThem(t *testing.T) {
	t.Parallel()
	j := actionJob(t, jobspec.OperationRun, jobspec.ActionStep{Name: "bad", InlineContents: "printf 'a=1\\nhunter2 hunter2\\n' > $BERTH_ACTIONS_OUTPUT_FILEPATH"})
	r := j.run(t)
	if want := `action check: the outputs of step "bad": line 2 is neither name=value nor a JSON object`; r.Error != want {
		t.Errorf("error %q, want %q", r.Error, want)
	}
}

// What scripts write to BERTH_METRICS is in the result, also when one fails, and what is
// wrong with it fails nothing.
func TestMetricsOfSteps(t *testing.T) {
	t.Parallel()
	j := actionJob(t, jobspec.OperationRun,
		jobspec.ActionStep{Name: "count", InlineContents: "printf '# TYPE rows gauge\nrows{table=\"a\"} 1\nrows{table=\"b\"} 2 1700000000000\n' >> $BERTH_METRICS"},
		jobspec.ActionStep{Name: "count again", InlineContents: "echo 'rows{table=\"b\"} 3' > $NUON_METRICS; echo hunter2: hunter2 >> $BERTH_METRICS"},
		jobspec.ActionStep{Name: "a pipe", InlineContents: "mkfifo $BERTH_METRICS"},
		jobspec.ActionStep{Name: "too much", InlineContents: "truncate -s 10G $BERTH_METRICS"},
		jobspec.ActionStep{Name: "fail", InlineContents: "echo 'failed 1' > $BERTH_METRICS; exit 7"},
	)
	r := j.run(t)
	if r.Outcome != jobspec.OutcomeFailed || r.ExitCode != 7 {
		t.Errorf("result %+v", r)
	}
	want := []jobspec.Metric{
		{Name: "rows", Labels: map[string]string{"table": "a"}, Kind: jobspec.MetricGauge, Value: 1},
		{Name: "rows", Labels: map[string]string{"table": "b"}, Kind: jobspec.MetricUntyped, Value: 3},
		{Name: "failed", Kind: jobspec.MetricUntyped, Value: 1},
	}
	if diff := cmp.Diff(want, r.Metrics); diff != "" {
		t.Errorf("numbers (-want +got):\n%s", diff)
	}
	wantError := `step "count again": line 2 is not in the Prometheus text format; step "a pipe": the metrics file is not a regular file; ` +
		`step "too much": the metrics file is larger than 256 KiB: none of its numbers are kept`
	if r.MetricsError != wantError {
		t.Errorf("it says %q, want %q", r.MetricsError, wantError)
	}
	wantContains(t, "log", j.log(t), `metrics of step "count": times in the file are not used`)
	wantContains(t, "log", j.log(t), `metrics of step "count again": line 2 is not`)

	j = actionJob(t, jobspec.OperationRun, jobspec.ActionStep{Name: "none", InlineContents: "test ! -e $BERTH_METRICS"})
	if r := j.must(t); r.Metrics != nil || r.MetricsError != "" {
		t.Errorf("numbers of a script that writes none: %+v", r)
	}
}

func TestActionIsPinnedAndAppliedAsPlanned(t *testing.T) {
	t.Parallel()
	step := jobspec.ActionStep{
		Name: "restart", InlineContents: "echo {{ .nuon.name }} $HOST >> $BERTH_INSTALL_DIR/effects",
		EnvVars: map[string]string{"HOST": "{{ .nuon.components.db.outputs.host }}"},
	}
	plan := actionJob(t, jobspec.OperationPlan, step)
	plan.must(t)
	effects := filepath.Join(plan.env["BERTH_INSTALL_DIR"], "effects")
	if _, err := os.Stat(effects); !os.IsNotExist(err) {
		t.Error("a plan had an effect")
	}
	var s jobspec.PlanSummary
	plan.readJSON(t, "out/plan.summary.json", &s)
	want := []jobspec.ObjectChange{{Address: "check/restart", Action: "run", Fields: []jobspec.FieldChange{
		{Path: "script", After: "echo acme $HOST >> $BERTH_INSTALL_DIR/effects"}, {Path: "env_vars", After: "HOST"},
	}}}
	if diff := cmp.Diff(want, s.Objects); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	wantContains(t, "inputs", plan.read(t, "out/inputs.json"), "db.internal")

	apply := actionJob(t, jobspec.OperationApply, jobspec.ActionStep{Name: "restart", InlineContents: "exit 1"})
	apply.env["BERTH_INSTALL_DIR"] = plan.env["BERTH_INSTALL_DIR"]
	copyTree(t, filepath.Join(plan.path, "out/pinned"), filepath.Join(apply.path, "in/pinned"))
	apply.must(t)
	if data, err := os.ReadFile(effects); err != nil || string(data) != "acme db.internal\n" {
		t.Errorf("effects %q, %v", data, err)
	}

	again := actionJob(t, jobspec.OperationPlan, step)
	again.must(t)
	if plan.read(t, "out/plan.canonical.json") != again.read(t, "out/plan.canonical.json") {
		t.Error("two plans of the same action differ")
	}
	private(t, plan.path)
}

func TestStopEndsTheWholeProcessGroup(t *testing.T) {
	t.Parallel()
	j := actionJob(t, jobspec.OperationRun, jobspec.ActionStep{Name: "wait", InlineContents: `
trap 'echo cleaned up; exit 4' TERM
sleep 1000 &
echo $! > $BERTH_INSTALL_DIR/pid
echo ready
wait
`}, jobspec.ActionStep{Name: "next", Command: "touch $BERTH_INSTALL_DIR/next"})
	cmd := j.start(t)
	waitFor(t, "the script to be ready", contains(filepath.Join(j.path, "stdout.log"), "ready"))
	stop(t, cmd)
	r := j.finish(t, cmd)
	if r.Outcome != jobspec.OutcomeCancelled || r.ExitCode != 4 {
		t.Errorf("result %+v", r)
	}
	wantContains(t, "log", j.log(t), "cleaned up")
	wantContains(t, "error", r.Error, `stopped on request: action check: step "wait"`)
	notRunning(t, filepath.Join(j.env["BERTH_INSTALL_DIR"], "pid"))
}

func TestActionThatTakesTooLong(t *testing.T) {
	t.Parallel()
	j := actionJob(t, jobspec.OperationRun, jobspec.ActionStep{Name: "slow", InlineContents: "echo $$ > $BERTH_INSTALL_DIR/pid; exec sleep 1000"})
	j.spec.TimeoutSeconds = 1
	r := j.run(t)
	if r.Outcome != jobspec.OutcomeFailed || r.ExitCode != 128+15 {
		t.Errorf("result %+v", r)
	}
	wantContains(t, "error", r.Error, `action check took longer than the 1s that it may: action check: step "slow"`)
	notRunning(t, filepath.Join(j.env["BERTH_INSTALL_DIR"], "pid"))
}

func TestNothingThatAScriptStartedOutlivesIt(t *testing.T) {
	t.Parallel()
	j := actionJob(t, jobspec.OperationRun, jobspec.ActionStep{Name: "daemon", InlineContents: "sleep 1000 & echo $! > $BERTH_INSTALL_DIR/pid"})
	j.must(t)
	notRunning(t, filepath.Join(j.env["BERTH_INSTALL_DIR"], "pid"))
}

func notRunning(t *testing.T, pidFile string) {
	t.Helper()
	data, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if err := json.Unmarshal(data, &pid); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the process to end", func() bool { return !alive(pid) })
}

func TestActionsThatCannotRun(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		step    jobspec.ActionStep
		outcome jobspec.Outcome
		want    string
	}{
		{
			name: "a file of a repository", step: jobspec.ActionStep{Name: "s", Command: "./scripts/run.sh"},
			outcome: jobspec.OutcomeRefused, want: `action check: step "s" runs a file, and its release has no repository for it`,
		},
		{
			name: "an interpreter that is not there", step: jobspec.ActionStep{Name: "s", InlineContents: "#!/usr/bin/env no-such-interpreter\n"},
			outcome: jobspec.OutcomeFailed, want: `action check: step "s": there is no no-such-interpreter on the runner's machine`,
		},
		{
			name: "a template that names what is not there", step: jobspec.ActionStep{Name: "s", InlineContents: "echo {{ .nuon.sandbox.outputs.vpc }}"},
			outcome: jobspec.OutcomeFailed, want: `step "s":1:9: .nuon.sandbox`,
		},
		{
			name: "nothing to run", step: jobspec.ActionStep{Name: "s", InlineContents: "\n"},
			outcome: jobspec.OutcomeRefused, want: `action check: step "s" has nothing to run`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := actionJob(t, jobspec.OperationRun, tc.step).run(t)
			wantContains(t, "error", r.Error, tc.want)
			if r.Outcome != tc.outcome {
				t.Errorf("outcome %s, want %s", r.Outcome, tc.outcome)
			}
		})
	}
}

// What an action says that it needs is looked for before its first step, where its
// steps look for it.
func TestActionNeedsTools(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	program := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program("turner", "echo turner-1.6")
	program("shy", "exit 1")
	program("client", `[ "$1 $2" = "version --client" ] && echo "Client Version: v1.34.2"`)
	path := map[string]string{"PATH": bin + ":" + os.Getenv("PATH")}
	for _, tc := range []struct {
		name  string
		tools []string
		env   map[string]string
		error string // what the refusal says, "" for a run
	}{
		{"none", nil, nil, ""},
		{"what is there", []string{"bash", "turner", "turner>=1.6", "client>=1.30"}, path, ""},
		{"one that a step alone finds counts as there", []string{"turner"}, path, ""},
		{"one that does not tell its version", []string{"shy>=9"}, path, ""},
		{"one that is missing", []string{"bash", "no-such-tool"}, nil, "needs no-such-tool, and there is none on the runner's machine (looked in "},
		{"one that is too old", []string{"turner>=1.7"}, path, "needs turner 1.7 or later, and " + filepath.Join(bin, "turner") + " is 1.6"},
		{"one that no step finds", []string{"turner"}, nil, "needs turner"},
		{"what is no tool", []string{"/bin/sh"}, nil, `"/bin/sh" names no tool`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for _, op := range []jobspec.Operation{jobspec.OperationRun, jobspec.OperationTick} {
				j := actionJob(t, op, jobspec.ActionStep{Name: "one", InlineContents: `touch "$BERTH_INSTALL_DIR/ran"`, EnvVars: tc.env})
				j.spec.Action.Tools = tc.tools
				ran := filepath.Join(j.env["BERTH_INSTALL_DIR"], "ran")
				if tc.error == "" {
					j.must(t)
				} else {
					r := j.run(t)
					if r.Outcome != jobspec.OutcomeRefused || !strings.Contains(r.Error, tc.error) || r.Remedy == "" {
						t.Errorf("%s: result = %+v, want it refused with a remedy: %s", op, r, tc.error)
					}
				}
				if _, err := os.Stat(ran); (err == nil) != (tc.error == "") {
					t.Errorf("%s: the step ran: %t", op, err == nil)
				}
			}
		})
	}
}

// A plan finds out sooner what is missing, and starts none of the tools.
func TestPlanOfActionLooksForTools(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	asked := filepath.Join(bin, "asked")
	if err := os.WriteFile(filepath.Join(bin, "turner"), []byte("#!/bin/sh\ntouch "+asked+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	j := actionJob(t, jobspec.OperationPlan, jobspec.ActionStep{Name: "one", Command: "true", EnvVars: map[string]string{"PATH": bin}})
	j.spec.Action.Tools = []string{"turner>=1.7"}
	j.must(t)
	if _, err := os.Stat(asked); err == nil {
		t.Error("the plan started a tool")
	}
	j = actionJob(t, jobspec.OperationPlan, jobspec.ActionStep{Name: "one", Command: "true"})
	j.spec.Action.Tools = []string{"turner"}
	if r := j.run(t); r.Outcome != jobspec.OutcomeRefused {
		t.Errorf("result = %+v, want it refused", r)
	}
}
