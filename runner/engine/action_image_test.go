package engine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
)

var toolsImage = "127.0.0.1:30500/components/tools@sha256:" + strings.Repeat("0f", 32)

// imageJob is a job whose engine finds these programs and no others, as in an
// image.
func imageJob(t *testing.T, op jobspec.Operation, programs []string, steps ...jobspec.ActionStep) *jobDir {
	t.Helper()
	j := actionJob(t, op, steps...)
	j.spec.Action.Image = "{{ .nuon.components.tools.outputs.image.ref }}"
	j.spec.State = state(t, map[string]any{"id": "ins_1", "name": "acme", "components": map[string]any{
		"tools": map[string]any{"outputs": map[string]any{"image": map[string]any{"ref": toolsImage, "tag": "1"}}},
	}})
	bin := t.TempDir()
	for _, name := range programs {
		to := name
		if name == "sh" { // not a bash that is called sh
			to = "dash"
		}
		path, err := exec.LookPath(to)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	j.env["PATH"] = bin
	return j
}

// The image is rendered, shown, and pinned with the scripts.
func TestPlanPinsTheImage(t *testing.T) {
	t.Parallel()
	j := imageJob(t, jobspec.OperationPlan, nil, jobspec.ActionStep{Name: "one", Command: "true"})
	j.must(t)
	for _, name := range []string{"out/plan.canonical.json", "out/pinned/action.json"} {
		var got struct{ Image string }
		if j.readJSON(t, name, &got); got.Image != toolsImage {
			t.Errorf("%s has image %q", name, got.Image)
		}
	}
	var shown jobspec.PlanSummary
	j.readJSON(t, "out/plan.summary.json", &shown)
	wantContains(t, "text of the plan", shown.Text, "# runs in image "+toolsImage)
	found := false
	for _, f := range shown.Objects[0].Fields {
		found = found || f.Path == "image" && f.After == toolsImage
	}
	if !found {
		t.Errorf("the fields do not show the image: %+v", shown.Objects[0].Fields)
	}
}

// A name that may lead to another image tomorrow is refused, planned or run.
func TestAttackImageByTag(t *testing.T) {
	t.Parallel()
	for _, op := range []jobspec.Operation{jobspec.OperationPlan, jobspec.OperationRun} {
		j := imageJob(t, op, []string{"bash", "touch"}, jobspec.ActionStep{Name: "one", Command: `touch "$BERTH_INSTALL_DIR/ran"`})
		j.spec.Action.Image = "127.0.0.1:30500/components/tools:{{ .nuon.components.tools.outputs.image.tag }}"
		r := j.run(t)
		if r.Outcome != jobspec.OutcomeRefused || !strings.Contains(r.Error, "not named by host and digest") || !strings.Contains(r.Remedy, "outputs.image.ref") {
			t.Errorf("%s: %+v", op, r)
		}
		if _, err := os.Stat(filepath.Join(j.env["BERTH_INSTALL_DIR"], "ran")); err == nil {
			t.Errorf("%s: the script ran", op)
		}
	}
}

// Scripts have the shell of the image, or none.
func TestShellsOfImages(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		programs []string
		step     jobspec.ActionStep
		says     string // of a step that works
		fails    string
	}{
		{name: "sh alone", programs: []string{"sh"}, step: jobspec.ActionStep{InlineContents: "#!/usr/bin/env sh\necho by ${BASH_VERSION-sh}"}, says: "by sh"},
		{name: "sh alone, a command", programs: []string{"sh"}, step: jobspec.ActionStep{Command: "echo one && echo by ${BASH_VERSION-sh}"}, says: "by sh"},
		{name: "sh alone, a script for bash", programs: []string{"sh"}, step: jobspec.ActionStep{InlineContents: "#!/bin/env bash\ntrue"}, fails: "there is no bash in image " + toolsImage},
		{name: "bash", programs: []string{"bash"}, step: jobspec.ActionStep{InlineContents: "#!/bin/sh\na=(x y); echo by ${a[1]}"}, says: "by y"},
		{name: "no shell, a program", programs: []string{"printf"}, step: jobspec.ActionStep{Command: "printf by-%s\\x0a x"}, fails: "neither bash nor sh"},
		{name: "no shell, plain arguments", programs: []string{"basename"}, step: jobspec.ActionStep{Command: " basename /a/by-itself "}, says: "by-itself"},
		{name: "no shell, no such program", step: jobspec.ActionStep{Command: "basename /a"}, fails: "there is no basename in image " + toolsImage + ", and no shell"},
		{name: "no shell, an assignment", programs: []string{"basename"}, step: jobspec.ActionStep{Command: "A=b basename /a"}, fails: "neither bash nor sh"},
		{name: "no shell, a script", programs: []string{"basename"}, step: jobspec.ActionStep{InlineContents: "basename /a\nbasename /b"}, fails: "neither bash nor sh in image"},
		{name: "no shell, a script for sh", step: jobspec.ActionStep{InlineContents: "#!/bin/env sh\ntrue"}, fails: "there is no sh in image"},
		{name: "no shell, another interpreter", programs: []string{"awk"}, step: jobspec.ActionStep{InlineContents: "#!/usr/bin/env -S awk -f\nBEGIN { print \"by awk\" }\n"}, says: "by awk"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.step.Name = "one"
			j := imageJob(t, jobspec.OperationRun, tc.programs, tc.step)
			r := j.run(t)
			if tc.fails != "" {
				if r.Outcome != jobspec.OutcomeFailed || !strings.Contains(r.Error, tc.fails) {
					t.Errorf("%+v, want a failure: %s", r, tc.fails)
				}
				return
			}
			if r.Outcome != jobspec.OutcomeSucceeded || !strings.Contains(j.log(t), tc.says) {
				t.Errorf("%+v, want it to say %q:\n%s", r, tc.says, j.log(t))
			}
		})
	}
}
