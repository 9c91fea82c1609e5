package api_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// switchable is hello whose components can be switched; web reads api.
func switchable(more ...string) fstest.MapFS {
	folder := hello()
	for _, name := range []string{"components/api.toml", "components/web.toml"} {
		text := "toggleable = true\n" + string(folder[name].Data)
		if name == "components/api.toml" {
			text = strings.Join(more, "") + text
		}
		folder = with(folder, name, text)
	}
	return with(with(folder, "components/extra.toml", "name = \"extra\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.4\"\ntoggleable = true\ndefault_enabled = false\n"+
		"[berth]\nlocal_source = \"src/extra\"\n"), "src/extra/main.tf", "# extra\n")
}

// pointers lists where faults are.
func pointers(p ctlapi.Problem) []string {
	var all []string
	if p.Errors != nil {
		for _, item := range *p.Errors {
			all = append(all, *item.Pointer)
		}
	}
	return all
}

func (c caller) toggle(toggles ctlapi.ComponentToggles) *ctlapi.UpdateInstallResponse {
	c.d.t.Helper()
	got, err := c.UpdateInstallWithResponse(c.d.t.Context(), "acme", nil, ctlapi.InstallUpdate{ComponentToggles: &toggles})
	if err != nil {
		c.d.t.Fatal(err)
	}
	return got
}

// deployed asks for a deploy and lists its steps that touch components.
func (c caller) deployed(components ...string) []string {
	c.d.t.Helper()
	got, err := c.CreateWorkflowWithResponse(c.d.t.Context(), "acme", nil, ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindDeploy, Components: components})
	must(c.d.t, got, err, http.StatusAccepted)
	return componentSteps(got.JSON202.Steps)
}

// componentSteps lists the steps of a workflow that touch components.
func componentSteps(all []ctlapi.Step) (steps []string) {
	for _, s := range all {
		if strings.HasPrefix(s.Name, "component/") {
			steps = append(steps, s.Kind+" "+s.Name)
		}
	}
	return steps
}

func TestToggles(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.released("hello", switchable())
	made, err := c.CreateInstallWithResponse(t.Context(), nil, acme())
	must(t, made, err, http.StatusCreated)

	// What is needed stays on, and the answer says who needs it.
	for _, tt := range []struct {
		toggles ctlapi.ComponentToggles
		pointer string
		says    string
	}{
		{ctlapi.ComponentToggles{"api": false}, "/component_toggles/api", `component "api" cannot be off while "web", which needs it, is on: reads .nuon.components.api.outputs.url at components/web.toml:`},
		{ctlapi.ComponentToggles{"sandbox": false}, "/component_toggles/sandbox", `the app has no component "sandbox"`},
	} {
		refused := problemOf(t, c.toggle(tt.toggles), nil, http.StatusUnprocessableEntity, "toggles_invalid")
		if diff := cmp.Diff([]string{tt.pointer}, pointers(refused)); diff != "" || !strings.Contains(*refused.Detail, tt.says) {
			t.Errorf("%v: %s (-want +got):\n%s", tt.toggles, *refused.Detail, diff)
		}
	}
	got, err := c.GetInstallWithResponse(t.Context(), "acme")
	must(t, got, err, http.StatusOK)
	if len(got.JSON200.ComponentToggles) != 0 || d.count(`select count(*) from installs where toggles_version > 0`) != 0 {
		t.Errorf("what was refused is there: %s", got.Body)
	}
	tag := got.HTTPResponse.Header.Get("ETag")

	// A component that is off by the app's word is no part of a deploy.
	if diff := cmp.Diff([]string{"deploy component/api", "deploy component/web"}, c.deployed()); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	off := ctlapi.ComponentToggles{"web": false, "extra": true}
	changed := c.toggle(off)
	must(t, changed, nil, http.StatusOK)
	if diff := cmp.Diff(off, changed.JSON200.ComponentToggles); diff != "" {
		t.Errorf("toggles (-want +got):\n%s", diff)
	}
	late, err := c.UpdateInstallWithResponse(t.Context(), "acme", &ctlapi.UpdateInstallParams{IfMatch: &tag}, ctlapi.InstallUpdate{ComponentToggles: &ctlapi.ComponentToggles{}})
	problemOf(t, late, err, http.StatusPreconditionFailed, "precondition_failed")
	must(t, c.toggle(off), nil, http.StatusOK)
	if n := d.count(`select toggles_version from installs`); n != 1 {
		t.Errorf("toggles version %d after one change and the same again, want 1", n)
	}
	if diff := cmp.Diff([]string{"deploy component/api", "deploy component/extra"}, c.deployed()); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	refused, err := c.CreateWorkflowWithResponse(t.Context(), "acme", nil, ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindDeploy, Components: []string{"web"}})
	if p := problemOf(t, refused, err, http.StatusUnprocessableEntity, "component_off"); !strings.Contains(*p.Remedy, "berth installs toggle acme web on") {
		t.Errorf("the refusal does not say how to switch it on: %s", refused.Body)
	}

	// A release that makes something on need what is off is not deployed.
	must(t, c.toggle(ctlapi.ComponentToggles{}), nil, http.StatusOK)
	c.released("hello", switchable("dependencies = [\"extra\"]\n"))
	refused, err = c.CreateWorkflowWithResponse(t.Context(), "acme", nil, ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindDeploy})
	if p := problemOf(t, refused, err, http.StatusConflict, "component_off"); !strings.Contains(*p.Detail, `component "api" needs "extra", which is switched off in install acme`) {
		t.Errorf("refusal: %s", refused.Body)
	}
	problemOf(t, c.toggle(ctlapi.ComponentToggles{"api": true}), nil, http.StatusUnprocessableEntity, "toggles_invalid")
	must(t, c.toggle(ctlapi.ComponentToggles{"extra": true}), nil, http.StatusOK)
	if diff := cmp.Diff([]string{"deploy component/extra", "deploy component/api", "deploy component/web"}, c.deployed()); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

// A preview plans with toggles that nobody has set: what it would remove and
// create, and nothing is switched.
func TestPreviewOfToggles(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.released("hello", switchable())
	made, err := c.CreateInstallWithResponse(t.Context(), nil, acme())
	must(t, made, err, http.StatusCreated)
	must(t, c.toggle(ctlapi.ComponentToggles{"web": false}), nil, http.StatusOK)
	preview := func(toggles ctlapi.ComponentToggles, change ...func(*ctlapi.WorkflowRequest)) *ctlapi.CreateWorkflowResponse {
		t.Helper()
		req := ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindDeploy, PlanOnly: true, PreviewToggles: &toggles}
		for _, fn := range change {
			fn(&req)
		}
		resp, err := c.CreateWorkflowWithResponse(t.Context(), "acme", nil, req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}

	got := preview(ctlapi.ComponentToggles{"extra": true})
	must(t, got, nil, http.StatusAccepted)
	if diff := cmp.Diff([]string{"deploy component/api", "deploy component/extra"}, componentSteps(got.JSON202.Steps)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&ctlapi.ComponentToggles{"web": false, "extra": true}, got.JSON202.PreviewToggles); diff != "" {
		t.Errorf("toggles of the preview (-want +got):\n%s", diff)
	}

	refused := problemOf(t, preview(ctlapi.ComponentToggles{"api": false, "web": true}), nil, http.StatusUnprocessableEntity, "toggles_invalid")
	if !strings.Contains(*refused.Detail, `component "api" cannot be off while "web", which needs it, is on`) {
		t.Errorf("refusal: %s", *refused.Detail)
	}
	for name, change := range map[string]func(*ctlapi.WorkflowRequest){
		"not a preview":    func(r *ctlapi.WorkflowRequest) { r.PlanOnly = false },
		"a deprovision":    func(r *ctlapi.WorkflowRequest) { r.Kind = ctlapi.WorkflowKindDeprovision },
		"run of an action": func(r *ctlapi.WorkflowRequest) { r.Kind, r.Action = ctlapi.WorkflowKindActionRun, new("x") },
	} {
		p := problemOf(t, preview(ctlapi.ComponentToggles{"extra": true}, change), nil, http.StatusUnprocessableEntity, "invalid")
		if !strings.Contains(*p.Detail, "preview_toggles is for a provision, deploy or toggle with plan_only") {
			t.Errorf("%s: %s", name, *p.Detail)
		}
	}
	if n := d.count(`select toggles_version from installs`); n != 1 {
		t.Errorf("toggles version %d after previews, want 1", n)
	}
}

func TestSyncComponentsOfInstalls(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.released("hello", switchable())
	acme := ctlapi.DeclaredInstall{
		Name: "acme", Inputs: &ctlapi.InputValues{"greeting": "Hello", "api_key": canary},
		ComponentToggles: &ctlapi.ComponentToggles{"extra": true}, Components: &ctlapi.ComponentOverrides{"api": {TfVars: "size = 1"}},
	}
	declare := func(want string) *ctlapi.InstallsResult {
		t.Helper()
		got := c.declare(nil, acme)
		if diff := cmp.Diff(want, strings.Join(append(decided(got), got.Items[0].NextComponents...), " ")); diff != "" {
			t.Errorf("decision (-want +got):\n%s", diff)
		}
		return got
	}
	declare("acme create customer=acme stack=local approval_option=prompt inputs.api_key inputs.greeting=Hello component_toggles.extra=on components.api.tf_vars=size = 1 → provision")
	declare("acme unchanged → provision")
	started, err := c.CreateWorkflowWithResponse(t.Context(), "acme", nil, ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindProvision})
	must(t, started, err, http.StatusAccepted)
	declare("acme unchanged")

	// An override wants its component, until that is deployed.
	acme.Components = &ctlapi.ComponentOverrides{"api": {TfVars: "size = 2"}}
	declare("acme update components.api.tf_vars=size = 2 → deploy api")
	declare("acme unchanged → deploy api")
	c.deployed("web")
	declare("acme unchanged → deploy api")
	c.deployed("api")
	declare("acme unchanged")

	// Inputs set by hand leave them alone, and want a deploy of all.
	set, err := c.SetInputsWithResponse(t.Context(), "acme", nil, ctlapi.InputsUpdate{Values: &ctlapi.InputValues{"port": "81"}})
	must(t, set, err, http.StatusOK)
	inputs, err := c.GetInputsWithResponse(t.Context(), "acme")
	must(t, inputs, err, http.StatusOK)
	if diff := cmp.Diff(acme.Components, inputs.JSON200.Components); diff != "" || inputs.JSON200.Version != 3 {
		t.Errorf("version %d of the inputs overrides (-want +got):\n%s", inputs.JSON200.Version, diff)
	}
	declare("acme unchanged → deploy")
	c.deployed()
	declare("acme unchanged")

	// Without them in the request all stays; an empty list takes them away.
	acme.ComponentToggles, acme.Components = nil, nil
	declare("acme unchanged")
	acme.ComponentToggles, acme.Components = &ctlapi.ComponentToggles{}, &ctlapi.ComponentOverrides{}
	declare("acme update component_toggles.extra components.api.tf_vars → deploy")
	if n := d.count(`select count(*) from installs i join install_inputs n on n.install_id = i.id and n.version = i.inputs_version where i.toggles = '{}' and n.overrides = '{}'`); n != 1 {
		t.Error("they are still there")
	}

	me, err := c.GetMeWithResponse(t.Context())
	must(t, me, err, http.StatusOK)
	before := d.fingerprint(me.JSON200.Org.ID)
	wrong := ctlapi.DeclaredInstall{
		Name: "acme", ComponentToggles: &ctlapi.ComponentToggles{"api": false}, Components: &ctlapi.ComponentOverrides{"api": {HelmValues: "a: 1"}, "web": {TfVars: "{"}},
	}
	refused, err := c.SyncInstallsWithResponse(t.Context(), "hello", nil, ctlapi.InstallsRequest{Installs: []ctlapi.DeclaredInstall{wrong}})
	p := problemOf(t, refused, err, http.StatusUnprocessableEntity, "installs_invalid")
	want := []string{"/installs/0/component_toggles/api", "/installs/0/components/api/helm_values", "/installs/0/components/web/tf_vars"}
	if diff := cmp.Diff(want, pointers(p)); diff != "" || d.fingerprint(me.JSON200.Org.ID) != before {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}
