package workflow_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
)

// deployed brings the example up, then starts a deploy whose release brings
// something new, up to its first component's proposal.
func deployed(t *testing.T) (r *rig, w string) {
	t.Helper()
	r = newRig(t)
	r.provision()
	r.reviews = true
	w = r.start(workflow.Request{Kind: flow.KindDeploy})
	r.planned(w, "component/greeting", "other")
	r.planned(w, "component/key", "")
	return r, w
}

// seen is a proposed change of a step, as a person saw it.
func (r *rig) seen(w, step string) workflow.Seen {
	r.t.Helper()
	return workflow.Seen{
		ChangeID:     r.value(`select change_id from steps where workflow_id = $1 and name = $2`, w, step),
		EffectDigest: r.value(`select c.effect_digest from changes c join steps s on s.change_id = c.id where s.workflow_id = $1 and s.name = $2`, w, step),
	}
}

// answer decides on changes and says how that went.
func (r *rig) answer(w string, approve bool, first workflow.Seen, also ...workflow.Seen) error {
	r.t.Helper()
	answer := model.Deny
	if approve {
		answer = model.Approve
	}
	err := r.ctl.Tx(r.t.Context(), r.org, func(ctx context.Context, tx *database.Tx) error {
		return workflow.Decide(ctx, tx, workflow.Answer{ChangeID: first.ChangeID, EffectDigest: first.EffectDigest, Also: also, Answer: answer, By: r.ada})
	})
	r.advance(w)
	return err
}

func TestOneAnswerCoversTheReleaseAndThePlan(t *testing.T) {
	t.Parallel()
	r, w := deployed(t)
	_, spec := r.openJob(w, "release")
	if spec.Release == nil || spec.Release.ID != r.release || len(spec.Release.Scripts) != 1 || len(spec.Release.Artifacts) != 4 || spec.State != nil {
		t.Errorf("spec = %+v", spec)
	}
	r.planned(w, "release", "new scripts")
	want := map[string]string{
		"runner": "succeeded", "release": "waiting proposed", "component/greeting": "waiting proposed", "component/key": "waiting preparing",
		"component/card": "pending", "check/files_intact": "pending",
	}
	if diff := cmp.Diff(want, r.steps(w)); diff != "" {
		t.Fatalf("steps (-want +got):\n%s", diff)
	}

	release, greeting := r.seen(w, "release"), r.seen(w, "component/greeting")
	old := release
	old.EffectDigest = "sha256:of-what-was-shown-before"
	if err := r.answer(w, true, greeting, old); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("an answer to something else: %v", err)
	}
	if diff := cmp.Diff(want, r.steps(w)); diff != "" {
		t.Errorf("half an answer was taken (-want +got):\n%s", diff)
	}
	if err := r.answer(w, true, greeting, release); err != nil {
		t.Fatal(err)
	}
	if got := r.steps(w); got["release"] != "running executing" || got["component/greeting"] != "waiting approved" {
		t.Errorf("before the release is accepted: %v", got)
	}
	if got := r.value(`select wait_reason || ' ' || wait_on from steps where workflow_id = $1 and name = 'component/greeting'`, w); got != "release "+release.ChangeID {
		t.Errorf("the component waits for %q", got)
	}
	r.applied(w, "release", jobspec.OutcomeSucceeded, nil)
	if got := r.steps(w); got["release"] != "succeeded applied" || got["component/greeting"] != "running executing" || got["component/key"] != "succeeded no_change" {
		t.Errorf("after the acceptance: %v", got)
	}
	if got := r.value(`select count(*)::text from decisions d join changes c on c.id = d.change_id where c.workflow_id = $1 and d.rule = 'person'`, w); got != "2" {
		t.Errorf("%s decisions by a person, want one for each of the two changes", got)
	}
}

func TestDeniedReleaseEndsTheWorkflow(t *testing.T) {
	t.Parallel()
	r, w := deployed(t)
	r.planned(w, "release", "new scripts")
	if err := r.answer(w, true, r.seen(w, "component/greeting")); err != nil {
		t.Fatal(err)
	}
	if err := r.answer(w, false, r.seen(w, "release")); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"runner": "succeeded", "release": "failed denied", "component/greeting": "pending withdrawn", "component/key": "pending withdrawn",
		"component/card": "pending", "check/files_intact": "pending",
	}
	if diff := cmp.Diff(want, r.steps(w)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if got := r.value(`select state || ' ' || error from workflows where id = $1`, w); got != "failed release was not done: denied by ada" {
		t.Errorf("workflow is %q", got)
	}

	// A retry of the acceptance begins all of it again; what was approved counts
	// for the same effect.
	r.tx(func(ctx context.Context, tx *database.Tx) error {
		_, err := workflow.Retry(ctx, tx, r.value(`select id from steps where workflow_id = $1 and name = 'release'`, w), "ada")
		return err
	})
	r.advance(w)
	r.planned(w, "release", "new scripts")
	r.planned(w, "component/greeting", "other")
	r.planned(w, "component/key", "")
	if err := r.answer(w, true, r.seen(w, "release")); err != nil {
		t.Fatal(err)
	}
	r.applied(w, "release", jobspec.OutcomeSucceeded, nil)
	if got := r.steps(w); got["release"] != "succeeded applied" || got["component/greeting"] != "running executing" {
		t.Errorf("after the retry: %v", got)
	}
}

func TestNewerReleaseTakesTheQuestionOver(t *testing.T) {
	t.Parallel()
	r, first := deployed(t)
	r.planned(first, "release", "new scripts")
	second := r.start(workflow.Request{Kind: flow.KindDeploy})
	r.planned(second, "release", "newer scripts")
	r.advance(first)
	if got := r.steps(first)["release"]; got != "failed superseded" {
		t.Errorf("the older question is %q", got)
	}
	if got := r.steps(second)["release"]; got != "waiting proposed" {
		t.Errorf("the newer question is %q", got)
	}
}
