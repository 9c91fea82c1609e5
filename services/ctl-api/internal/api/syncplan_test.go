package api_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// plan syncs a folder as a dry run.
func (c caller) plan(app string, folder fstest.MapFS) *ctlapi.SyncResult {
	c.d.t.Helper()
	got, err := c.SyncAppWithResponse(c.d.t.Context(), app, &ctlapi.SyncAppParams{DryRun: new(true)}, c.upload(folder))
	must(c.d.t, got, err, http.StatusOK)
	return got.JSON200
}

// bringLive does what deploys of a release do to the resources of an install.
func (d *door) bringLive(install, release string) {
	d.t.Helper()
	_, err := d.db.Admin().Exec(d.t.Context(), `
		update resources r set state = 'live', live_release_id = i.release_id, live_revision_id = i.revision_id, live_artifact_digest = i.artifact_digest
		from release_items i where i.release_id = $2 and i.component_id = r.component_id and r.install_id = $1`, install, release)
	if err != nil {
		d.t.Fatal(err)
	}
	if _, err := d.db.Admin().Exec(d.t.Context(), `update installs set state = 'live', release_id = $2 where id = $1`, install, release); err != nil {
		d.t.Fatal(err)
	}
}

// impacts are the installs of a plan in short: "acme@1: api changes".
func impacts(r *ctlapi.SyncResult) []string {
	all := []string{}
	for _, i := range r.Installs {
		line := i.Install.Name + "@"
		if i.Release == nil {
			line += "-"
		} else {
			line += string(rune('0' + i.Release.Number))
		}
		for _, c := range i.Components {
			line += " " + c.Component + ":" + string(c.Effect)
		}
		all = append(all, line)
	}
	return all
}

func TestSyncPlan(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	first := c.plan("hello", hello())
	if first.Against != nil || len(first.Installs) != 0 || len(first.Changes) == 0 {
		t.Fatalf("plan of a new app: %+v", first)
	}
	for _, o := range first.Changes {
		if o.Change != ctlapi.DiffObjectChangeAdded {
			t.Errorf("in a new app, %s %s is %s", o.Kind, o.Name, o.Change)
		}
	}

	one := c.released("hello", hello())
	ids := map[string]string{}
	for _, name := range []string{"acme", "globex"} {
		req := acme()
		req.Name, req.Customer, req.Provision = name, name, true
		made, err := c.CreateInstallWithResponse(t.Context(), nil, req)
		must(t, made, err, http.StatusCreated)
		ids[name] = made.JSON201.ID
	}
	d.bringLive(ids["acme"], one.Release.ID)

	same := c.plan("hello", hello())
	if same.Created || same.Against.Number != 1 || len(same.Changes) != 0 || *same.InstallsTotal != 2 {
		t.Errorf("plan of the same folder: %+v", same)
	}
	if diff := cmp.Diff([]string{"acme@1", "globex@- sandbox:new api:new web:new"}, impacts(same)); diff != "" {
		t.Errorf("installs, nothing changed (-want +got):\n%s", diff)
	}

	api := string(hello()["components/api.toml"].Data)
	folder := with(with(hello(), "components/api.toml", strings.Replace(api, "text =", "other =", 1)), "src/web/main.tf", "# another web\n")
	got := c.plan("hello", folder)
	if diff := cmp.Diff("api reuse*, sandbox reuse, web build*", actions(got)); diff != "" || !got.Created {
		t.Errorf("what is built (-want +got):\n%s", diff)
	}
	want := []string{
		"component api changed deploy: terraform_module.vars.other, terraform_module.vars.text",
		"component web changed build: source.digest",
	}
	if diff := cmp.Diff(want, told(got.Changes)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"acme@1 api:changes web:changes", "globex@- sandbox:new api:new web:new"}, impacts(got)); diff != "" {
		t.Errorf("installs (-want +got):\n%s", diff)
	}

	// What the folder no longer has is told, and that a deploy leaves it alone.
	smaller := with(with(hello(), "components/web.toml", ""), "src/web/main.tf", "")
	got = c.plan("hello", smaller)
	if diff := cmp.Diff([]string{"web"}, got.Removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"component web removed build deploy"}, told(got.Changes)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"acme@1 web:orphaned", "globex@- sandbox:new api:new"}, impacts(got)); diff != "" {
		t.Errorf("installs (-want +got):\n%s", diff)
	}
	if n := d.count(`select count(*) from configs`); n != 1 {
		t.Errorf("%d configs after plans, want 1", n)
	}
	// What really happens is not told twice: it is no plan.
	if done := c.sync("hello", folder); done.Changes != nil || done.Installs != nil || done.Against != nil {
		t.Errorf("a sync answers a plan: %+v", done)
	}
}

// A default that changes is named for the installs that live by it, with what
// reads it.
func TestSyncPlanNamesDefaults(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	folder := with(hello(), "inputs.toml", strings.Replace(string(hello()["inputs.toml"].Data), "sensitive = true", "sensitive = true\ndefault = \"old canary\"", 1))
	one := c.released("hello", folder)
	for name, inputs := range map[string]ctlapi.InputValues{"acme": {"greeting": "Hello"}, "globex": {"api_key": canary}} {
		req := acme()
		req.Name, req.Customer, req.Inputs = name, name, &inputs
		made, err := c.CreateInstallWithResponse(t.Context(), nil, req)
		must(t, made, err, http.StatusCreated)
		d.bringLive(made.JSON201.ID, one.Release.ID)
	}
	inputs := strings.NewReplacer(`"Ahoy"`, `"Hi"`, "old canary", "new canary").Replace(string(folder["inputs.toml"].Data))
	got := c.plan("hello", with(folder, "inputs.toml", inputs))
	if diff := cmp.Diff([]string{"acme@1", "globex@1 api:may_change"}, impacts(got)); diff != "" || !got.Created {
		t.Errorf("installs (-want +got):\n%s", diff)
	}
	want := [][]ctlapi.SyncInstallInput{{{Name: "api_key", Sensitive: true}}, {{Name: "greeting", Before: new("Ahoy"), After: new("Hi")}}}
	if diff := cmp.Diff(want, [][]ctlapi.SyncInstallInput{got.Installs[0].Inputs, got.Installs[1].Inputs}); diff != "" {
		t.Errorf("inputs (-want +got):\n%s", diff)
	}
}

// An older release is deployed again through the same door as any other.
func TestDeployAnOlderReleaseAgain(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	one := c.released("hello", hello())
	made, err := c.CreateInstallWithResponse(t.Context(), nil, acme())
	must(t, made, err, http.StatusCreated)
	two := c.released("hello", with(hello(), "src/api/main.tf", "# another api\n"))
	for _, tc := range []struct {
		to   string
		want int
	}{{"", 2}, {"1", 1}, {one.Release.ID, 1}, {"2", 2}} {
		req := ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindDeploy}
		if tc.to != "" {
			req.Release = &tc.to
		}
		w, err := c.CreateWorkflowWithResponse(t.Context(), "acme", nil, req)
		must(t, w, err, http.StatusAccepted)
		if r := w.JSON202.Release; r == nil || r.Number != tc.want {
			t.Errorf("deploy to %q has release %+v, want %d", tc.to, r, tc.want)
		}
		cancelled, err := c.CancelWorkflowWithResponse(t.Context(), w.JSON202.ID, nil)
		must(t, cancelled, err, http.StatusAccepted)
	}
	none := "9"
	w, err := c.CreateWorkflowWithResponse(t.Context(), "acme", nil, ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindDeploy, Release: &none})
	if err != nil || w.StatusCode()/100 == 2 {
		t.Errorf("deploy to a release that is not there: %v %s (newest is %d)", err, w.Body, two.Release.Number)
	}
}
