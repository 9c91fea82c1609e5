package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// opsDirectory is the directory of a repository, as the agent unpacks it.
var opsDirectory = jobspec.Artifact{Repository: "org/app/ops", Digest: "sha256:" + strings.Repeat("5c", 32)}

// inRepository is a step with a command of that directory.
func inRepository(command string) jobspec.ActionStep {
	return jobspec.ActionStep{Name: "s", Command: command, Artifact: &opsDirectory}
}

// withDirectory gives a job the directory.
func (j *jobDir) withDirectory(t *testing.T) *jobDir {
	t.Helper()
	for name, text := range map[string]string{
		"check.sh":     "#!/usr/bin/env sh\nset -o pipefail\na=(in \"$@\")\n. ./lib/say.sh\nsay \"${a[*]}\"\n",
		"lib/say.sh":   "say() { printf '%s' \"$*\" > \"$BERTH_INSTALL_DIR/said\"; echo said=\"$*\" >> \"$BERTH_ACTIONS_OUTPUT_FILEPATH\"; }\n",
		"bin/hello.py": "#!/bin/sh\nprintf hello > \"$BERTH_INSTALL_DIR/said\"\n",
		"true":         "printf never > \"$BERTH_INSTALL_DIR/said\"\n",
	} {
		j.write(t, "in/"+opsDirectory.Folder()+"/"+name, text)
	}
	return j
}

func TestCommandsOfARepository(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, command, want string }{
		{"a script, with what it is given", "./check.sh one 'two three'", "in one two three"},
		{"a script without ./", "check.sh one", "in one"},
		{"a script below", "bin/hello.py", "hello"},
		{"a template", "./check.sh {{ .nuon.components.db.outputs.host }}", "in db.internal"},
		{"a command line", ". ./lib/say.sh && say \"$(ls lib)\"", "say.sh"},
		{"a command line that begins with a script", "./check.sh a && . lib/say.sh && say b", "b"},
		{"a program that a file is called like", "true && . lib/say.sh && say program", "program"},
		{"the directory", `. ./lib/say.sh; say "${PWD##*/in/}"`, opsDirectory.Folder()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			j := actionJob(t, jobspec.OperationRun, inRepository(tc.command)).withDirectory(t)
			j.must(t)
			data, err := os.ReadFile(filepath.Join(j.env["BERTH_INSTALL_DIR"], "said"))
			if err != nil || string(data) != tc.want {
				t.Errorf("said %q, %v; want %q", data, err, tc.want)
			}
		})
	}
}

// An apply runs what the plan pinned, in the directory that it pinned.
func TestPlannedCommandOfARepository(t *testing.T) {
	t.Parallel()
	plan := actionJob(t, jobspec.OperationPlan, inRepository("./check.sh planned")).withDirectory(t)
	plan.must(t)
	var summary jobspec.PlanSummary
	plan.readJSON(t, "out/plan.summary.json", &summary)
	want := []jobspec.FieldChange{{Path: "script", After: "./check.sh planned"}, {Path: "directory", After: opsDirectory.Digest}}
	if diff := cmp.Diff(want, summary.Objects[0].Fields); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	wantContains(t, "canonical plan", plan.read(t, "out/plan.canonical.json"), opsDirectory.Digest)

	other := inRepository("./check.sh ordered")
	apply := actionJob(t, jobspec.OperationApply, other).withDirectory(t)
	apply.write(t, "in/pinned/action.json", plan.read(t, "out/pinned/action.json"))
	if r := apply.must(t); string(r.Outputs["said"].Value) != `"in planned"` {
		t.Errorf("outputs %v", r.Outputs)
	}

	without := actionJob(t, jobspec.OperationApply, other)
	without.write(t, "in/pinned/action.json", plan.read(t, "out/pinned/action.json"))
	r := without.run(t)
	wantContains(t, "error", r.Error, "and the job came without it")
	if r.Outcome != jobspec.OutcomeRefused {
		t.Errorf("outcome %s, want it refused", r.Outcome)
	}
}

func TestCommandsThatARepositoryHasNot(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"./gone.sh", "../check.sh", "./lib"} {
		for _, op := range []jobspec.Operation{jobspec.OperationPlan, jobspec.OperationRun} {
			r := actionJob(t, op, inRepository(command)).withDirectory(t).run(t)
			wantContains(t, "error", r.Error, `step "s" runs `+command+", which is not in the directory of its repository")
			if r.Outcome != jobspec.OutcomeRefused {
				t.Errorf("%s of %s: outcome %s, want it refused", op, command, r.Outcome)
			}
		}
	}
}
