package agent_test

import (
	"os"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
)

const imageTemplate = "{{ .nuon.components.tools.outputs.image.ref }}"

// inImage makes a script one that runs in an image.
func inImage(s *jobspec.Script) { s.Action.Image = imageTemplate }

// A runner whose engines are processes runs no step of an action that asks for an
// image, planned or run.
func TestImageNeedsPods(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	check := checkOf(inImage, "append "+r.file("effects"))
	r.accept(check)
	r.start()
	plan := script("append " + r.file("effects"))
	plan.Operation, plan.ChangeID, plan.Action.Image = jobspec.OperationPlan, id.New(id.Change), imageTemplate
	plan.Action.ReadOnly = false
	run := script("append " + r.file("effects"))
	run.Action.Image, run.TimeoutSeconds = imageTemplate, check.TimeoutSeconds
	for name, spec := range map[string]jobspec.Spec{"planned": plan, "run": run} {
		result := r.plane.result(t, r.plane.give(spec))
		if result.Outcome != jobspec.OutcomeRefused || !strings.Contains(result.Error, "runs jobs as processes") || !strings.Contains(result.Remedy, "--engines process") {
			t.Errorf("%s: %+v, want it refused for want of pods", name, result)
		}
	}
	if r.count() != 0 {
		t.Error("the script ran, and not in its image")
	}
}

// Somebody who holds the dispatch key has an accepted script run in another image,
// or in none.
func TestAttackAcceptedScriptInAnotherImage(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.plane.accept = nil
	r.accept(checkOf(inImage, "append "+r.file("effects")))
	r.start()
	for name, image := range map[string]string{
		"none": "", "another": "127.0.0.1:30500/components/evil@sha256:" + strings.Repeat("66", 32), "rendered": "127.0.0.1:30500/components/tools@sha256:" + strings.Repeat("0f", 32),
	} {
		spec := script("append " + r.file("effects"))
		spec.TimeoutSeconds, spec.Action.Image = 30, image
		if result := r.plane.result(t, r.plane.give(spec)); result.Outcome != jobspec.OutcomeRefused || len(result.Differs) != 1 || result.Differs[0].Field != "script" {
			t.Errorf("%s: result = %+v, want it refused because of the script", name, result)
		}
	}
	if _, err := os.Stat(r.file("effects")); err == nil {
		t.Error("the script ran")
	}
}

// The review of a release shows the image of a script, and one that changes.
func TestReviewShowsTheImage(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.start()
	release := jobspec.Release{ID: id.New(id.Release), Number: 1, Scripts: []jobspec.Script{checkOf(inImage)}}
	shown := ""
	for _, field := range r.review(id.New(id.Change), release).Summary.Objects[0].Fields {
		if field.Path == "image" {
			shown = field.After
		}
	}
	if shown != imageTemplate {
		t.Errorf("the review shows image %q, want %q", shown, imageTemplate)
	}
}
