package workflow_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
	"github.com/berth-dev/berth/services/internal/fault"
)

// An update of the runner is a change without a resource and without a release: it names
// the packages on offer, waits for its decision, and leaves the install as it is.
func TestRunnerUpdate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.provision()
	digest := "sha256:" + strings.Repeat("a", 64)
	r.exec(`insert into runner_versions (org_id, version, platform, repository, digest, size_bytes, list, signed_by, created_by)
		values ($1, '1.5.0', 'linux_amd64', $1 || '/runner.versions', $2, 5, '{}', '{key}', 'ada')`, r.org, digest)
	refused := func(req workflow.Request, kind error, want string) {
		t.Helper()
		req.InstallID, req.Kind = r.install, flow.KindRunnerUpdate
		err := r.ctl.Tx(t.Context(), r.org, func(ctx context.Context, tx *database.Tx) error {
			_, err := workflow.Start(ctx, tx, req)
			return err
		})
		if !errors.Is(err, kind) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", req, err, want)
		}
	}
	refused(workflow.Request{}, fault.ErrInvalid, "needs runner_version")
	refused(workflow.Request{RunnerVersion: "1.6.0"}, fault.ErrConflict, "not on offer")
	refused(workflow.Request{RunnerVersion: "1.5.0", ControlPlane: "1.4.0"}, fault.ErrInvalid, "update the control plane first")

	w := r.start(workflow.Request{Kind: flow.KindRunnerUpdate, RunnerVersion: "1.5.0", ControlPlane: "1.7.0"})
	_, spec := r.openJob(w, "runner_update")
	want := &jobspec.RunnerUpdate{Version: "1.5.0", ControlPlane: "1.7.0", Packages: []jobspec.RunnerPackage{
		{Platform: "linux_amd64", Artifact: jobspec.Artifact{Repository: r.org + "/runner.versions", Digest: digest}},
	}}
	if diff := cmp.Diff(want, spec.RunnerUpdate); diff != "" || spec.Kind != jobspec.KindRunnerUpdate || spec.State != nil || spec.Resource != nil {
		t.Errorf("spec %+v (-want +got):\n%s", spec, diff)
	}
	r.planned(w, "runner_update", "1.5.0")
	if got := r.steps(w)["runner_update"]; got != "waiting proposed" {
		t.Errorf("before the decision it is %q", got)
	}
	if err := r.answer(w, true, r.seen(w, "runner_update")); err != nil {
		t.Fatal(err)
	}
	r.applied(w, "runner_update", jobspec.OutcomeSucceeded, nil)
	if got := r.value(`select w.state || ' ' || c.kind || ' ' || c.state || ' ' || i.state || ' ' || (i.release_id is not null) from workflows w
		join changes c on c.workflow_id = w.id join installs i on i.id = w.install_id where w.id = $1`, w); got != "succeeded runner_update applied live true" {
		t.Errorf("afterwards: %q", got)
	}
}

// A version that fell back fails the step, and nothing tries it again by itself.
func TestRunnerUpdateThatFellBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.provision()
	r.exec(`insert into runner_versions (org_id, version, platform, repository, digest, size_bytes, list, signed_by, created_by)
		values ($1, '1.5.0', 'linux_amd64', 'r', $2, 5, '{}', '{}', 'ada')`, r.org, "sha256:"+strings.Repeat("a", 64))
	w := r.start(workflow.Request{Kind: flow.KindRunnerUpdate, RunnerVersion: "1.5.0", ApproveAll: true})
	r.planned(w, "runner_update", "1.5.0")
	r.applied(w, "runner_update", jobspec.OutcomeFailed, nil)
	if got := r.steps(w)["runner_update"]; got != "failed failed" {
		t.Errorf("it is %q", got)
	}
	if got := r.value(`select w.state || ' ' || i.state from workflows w join installs i on i.id = w.install_id where w.id = $1`, w); got != "failed live" {
		t.Errorf("afterwards: %q", got)
	}
}
