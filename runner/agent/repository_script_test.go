package agent_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// keepDirectory puts the directory of a repository into the runner's own registry.
func (r *runner) keepDirectory(text string) jobspec.Artifact {
	r.t.Helper()
	dir := r.t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "check.sh"), []byte(text), 0o755); err != nil {
		r.t.Fatal(err)
	}
	layout, err := oci.Open(r.dir.Artifacts())
	if err != nil {
		r.t.Fatal(err)
	}
	packed, err := oci.Pack(r.t.Context(), layout, oci.PackInput{Kind: oci.Kind(jobspec.KindScripts), Dir: dir})
	if err != nil {
		r.t.Fatal(err)
	}
	return jobspec.Artifact{Repository: "org/shop/ops", Digest: packed.Digest.String()}
}

// in makes a script one that runs in a directory.
func in(a jobspec.Artifact) func(*jobspec.Script) {
	return func(s *jobspec.Script) { s.Action.Steps[0].Artifact = &a }
}

// A scheduled check of a repository runs from the own registry, with the control
// plane and the org's registry away. Nobody may write to its directory.
func TestScheduledScriptOfARepository(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	ops := r.keepDirectory("once")
	folder := "in/" + ops.Folder()
	check := checkOf(in(ops), "sh cat "+folder+"/check.sh > "+r.file("read"),
		"sh test -w "+folder+" && echo ' and may change it' >> "+r.file("read"), "touch "+r.file("begun"))
	r.accept(check)
	r.publish(1, scheduledAs(check))
	r.runsInAnOutage()
	if got, err := os.ReadFile(r.file("read")); err != nil || string(got) != "once" {
		t.Errorf("the script read %q, %v", got, err)
	}
}

// Somebody who holds the dispatch key has an accepted command run in a directory
// that nobody accepted.
func TestAttackAcceptedCommandInAnotherDirectory(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.plane.accept = nil
	good, evil := r.keepDirectory("good"), r.keepDirectory("evil")
	r.accept(checkOf(in(good), "append "+r.file("effects")))
	r.start()
	order := func(a *jobspec.Artifact) jobspec.Result {
		spec := script("append " + r.file("effects"))
		spec.TimeoutSeconds = 30
		spec.Action.Steps[0].Artifact = a
		return r.plane.result(t, r.plane.give(spec))
	}
	for name, a := range map[string]*jobspec.Artifact{"another": &evil, "none": nil} {
		if result := order(a); result.Outcome != jobspec.OutcomeRefused || len(result.Differs) != 1 || result.Differs[0].Field != "script" {
			t.Errorf("%s: result = %+v, want it refused because of the script", name, result)
		}
	}
	if r.count() != 0 {
		t.Error("the script ran")
	}
	good.Repository = "org/shop/moved" // the digest says what it is
	if result := order(&good); result.Outcome != jobspec.OutcomeSucceeded || r.count() != 1 {
		t.Errorf("the accepted directory: %+v", result)
	}
}

// A release whose scripts cannot be had is not accepted: they could not run when the
// control plane is away.
func TestReleaseIsAcceptedWithItsDirectories(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	empty := httptest.NewServer(http.NotFoundHandler())
	defer empty.Close()
	r.plane.change(func() { r.plane.registry = empty.Listener.Addr().String() })
	var trust datadir.Trust
	if _, err := datadir.ReadJSON(r.dir.Trust(), &trust); err != nil {
		t.Fatal(err)
	}
	trust.Registry = empty.URL
	if err := datadir.WriteJSON(r.dir.Trust(), trust); err != nil {
		t.Fatal(err)
	}
	here := r.keepDirectory("here")
	r.start()
	gone := jobspec.Artifact{Repository: "org/shop/ops", Digest: digest.FromString("gone").String()}
	release := jobspec.Release{ID: id.New(id.Release), Number: 1, Scripts: []jobspec.Script{checkOf(in(gone))}}
	result := r.plane.result(t, r.plane.give(jobspec.Spec{
		Kind: jobspec.KindRelease, Operation: jobspec.OperationPlan, ChangeID: id.New(id.Change), Release: &release,
	}))
	if result.Outcome != jobspec.OutcomeFailed || !strings.Contains(result.Error, "scripts of action check") {
		t.Errorf("result = %+v, want it failed for want of the directory", result)
	}
	release.Scripts = []jobspec.Script{checkOf(in(here))}
	plan := r.review(id.New(id.Change), release)
	shown := false
	for _, field := range plan.Summary.Objects[0].Fields {
		shown = shown || field.Path == "step 1 one: directory" && field.After == here.Digest
	}
	if !shown {
		t.Errorf("the review does not show the directory: %+v", plan.Summary.Objects[0].Fields)
	}
}
