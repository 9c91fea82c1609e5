package installs_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/internal/fault"
)

// secret must be in nothing that a plan tells.
const secret = "hunter2"

func defined() []appconfig.Input {
	hello := "Hello"
	return []appconfig.Input{
		{Name: "greeting", Type: appconfig.InputString, Default: &hello},
		{Name: "port", Type: appconfig.InputNumber},
		{Name: "debug", Type: appconfig.InputBool},
		{Name: "zones", Type: appconfig.InputList},
		{Name: "limits", Type: appconfig.InputJSON},
		{Name: "region", Type: appconfig.InputString, Required: true},
		{Name: "domain", Type: appconfig.InputString, UserConfigurable: true},
		{Name: "api_key", Type: appconfig.InputString, Sensitive: true},
		{Name: "pin", Type: appconfig.InputNumber, Sensitive: true},
	}
}

// app has components too: web can be off and needs db, which can be off; idle is
// off unless an install wants it; base is always there.
func app() *appconfig.App {
	return &appconfig.App{Inputs: defined(), Components: []appconfig.Component{
		{Name: "web", Toggleable: true, Dependencies: []string{"db"}, HelmChart: &appconfig.HelmChart{}},
		{Name: "db", Toggleable: true, TerraformModule: &appconfig.TerraformModule{}},
		{Name: "idle", Toggleable: true, DefaultEnabled: new(false), TerraformModule: &appconfig.TerraformModule{}},
		{Name: "base", TerraformModule: &appconfig.TerraformModule{}},
	}}
}

func inputs(port string) installs.Inputs {
	return installs.Inputs{Plain: installs.Values{"region": "eu", "port": port}, Sensitive: installs.Values{"api_key": secret}}
}

// acme is an install that was provisioned with the inputs that it has.
func acme(change ...func(*installs.Present)) installs.Present {
	p := installs.Present{
		ID: "ins_acme", Name: "acme", CustomerID: "cus_1", CustomerName: "acme-corp", Stack: "local", ApprovalOption: "prompt",
		Labels: map[string]string{"ring": "stable"}, State: "live", InputsVersion: 3, Inputs: inputs("80"),
		Taken: installs.Taken{Version: 3, Inputs: inputs("80")},
	}
	for _, fn := range change {
		fn(&p)
	}
	return p
}

// overriding has tf_vars of base, which were others when they were taken.
func overriding(now, taken string) func(*installs.Present) {
	return func(p *installs.Present) {
		p.Overrides = installs.Overrides{"base": {TFVars: now}}
		p.Taken.Overrides = installs.Overrides{"base": {TFVars: taken}}
	}
}

// asAcme declares what acme is.
func asAcme(change ...func(*installs.Wanted)) installs.Wanted {
	w := installs.Wanted{Name: "acme", Stack: "local", ApprovalOption: "prompt", Inputs: installs.Values{"region": "eu", "port": "80"}}
	for _, fn := range change {
		fn(&w)
	}
	return w
}

func TestPlan(t *testing.T) {
	t.Parallel()
	wants := func(fn func(*installs.Wanted)) []installs.Wanted { return []installs.Wanted{asAcme(fn)} }
	tests := []struct {
		name    string
		present []installs.Present
		wanted  []installs.Wanted
		want    []installs.Decision
		faults  []fault.FieldError
	}{
		{
			name:   "one that is not there is made, for a customer of its name",
			wanted: wants(func(w *installs.Wanted) { w.Labels = map[string]string{"ring": "canary"}; w.Inputs["api_key"] = secret }),
			want: []installs.Decision{{Name: "acme", Action: installs.ActionCreate, Next: installs.NextProvision, Changes: []installs.FieldChange{
				{Field: "customer", New: new("acme")}, {Field: "stack", New: new("local")}, {Field: "approval_option", New: new("prompt")},
				{Field: "labels.ring", New: new("canary")}, {Field: "inputs.api_key", Sensitive: true},
				{Field: "inputs.port", New: new("80")}, {Field: "inputs.region", New: new("eu")},
			}}},
		},
		{
			name: "one that is as declared stays; what is not named is kept", present: []installs.Present{acme()}, wanted: []installs.Wanted{asAcme()},
			want: []installs.Decision{{Name: "acme", Action: installs.ActionUnchanged, Kept: []string{"api_key"}}},
		},
		{
			name: "its own customer by id or by name is no change", present: []installs.Present{acme()}, wanted: wants(func(w *installs.Wanted) { w.Customer = "cus_1" }),
			want: []installs.Decision{{Name: "acme", Action: installs.ActionUnchanged, Kept: []string{"api_key"}}},
		},
		{
			name: "changes are told old and new", present: []installs.Present{acme()},
			wanted: wants(func(w *installs.Wanted) {
				w.ApprovalOption, w.Labels = "approve_all", map[string]string{"tier": "gold"}
				w.Inputs = installs.Values{"region": "us", "debug": "true"}
			}),
			want: []installs.Decision{{Name: "acme", Action: installs.ActionUpdate, Next: installs.NextDeploy, Kept: []string{"api_key", "port"}, Changes: []installs.FieldChange{
				{Field: "approval_option", Old: new("prompt"), New: new("approve_all")},
				{Field: "labels.ring", Old: new("stable")}, {Field: "labels.tier", New: new("gold")},
				{Field: "inputs.debug", New: new("true")}, {Field: "inputs.region", Old: new("eu"), New: new("us")},
			}}},
		},
		{
			name: "settings alone want no deploy", present: []installs.Present{acme()}, wanted: wants(func(w *installs.Wanted) { w.Labels = map[string]string{} }),
			want: []installs.Decision{{Name: "acme", Action: installs.ActionUpdate, Kept: []string{"api_key"}, Changes: []installs.FieldChange{
				{Field: "labels.ring", Old: new("stable")},
			}}},
		},
		{
			name: "a sensitive input is changed, and that is all", present: []installs.Present{acme()}, wanted: wants(func(w *installs.Wanted) { w.Inputs["api_key"] = secret + "!" }),
			want: []installs.Decision{{Name: "acme", Action: installs.ActionUpdate, Next: installs.NextDeploy, Changes: []installs.FieldChange{
				{Field: "inputs.api_key", Sensitive: true},
			}}},
		},
		{
			name:    "an input that was stored in clear and is sensitive now is not told",
			present: []installs.Present{acme(func(p *installs.Present) { p.Inputs.Plain["pin"] = "1234" })}, wanted: []installs.Wanted{asAcme()},
			want: []installs.Decision{{Name: "acme", Action: installs.ActionUpdate, Next: installs.NextDeploy, Kept: []string{"api_key", "pin"}, Changes: []installs.FieldChange{
				{Field: "inputs.pin", Sensitive: true},
			}}},
		},
		{
			name:    "an input that the app no longer has goes",
			present: []installs.Present{acme(func(p *installs.Present) { p.Inputs.Plain["motto"], p.Taken.Inputs.Plain["motto"] = "x", "x" })}, wanted: []installs.Wanted{asAcme()},
			want: []installs.Decision{{Name: "acme", Action: installs.ActionUpdate, Next: installs.NextDeploy, Kept: []string{"api_key"}, Changes: []installs.FieldChange{
				{Field: "inputs.motto", Old: new("x")},
			}}},
		},
		{
			name:    "inputs that no workflow has taken yet want a deploy still",
			present: []installs.Present{acme(func(p *installs.Present) { p.Taken = installs.Taken{Version: 2, Inputs: inputs("79")} })}, wanted: []installs.Wanted{asAcme()},
			want: []installs.Decision{{Name: "acme", Action: installs.ActionUnchanged, Next: installs.NextDeploy, Kept: []string{"api_key"}}},
		},
		{
			name:    "one that was never provisioned wants that",
			present: []installs.Present{acme(func(p *installs.Present) { p.State, p.Taken = "new", installs.Taken{} })}, wanted: []installs.Wanted{asAcme()},
			want: []installs.Decision{{Name: "acme", Action: installs.ActionUnchanged, Next: installs.NextProvision, Kept: []string{"api_key"}}},
		},
		{
			name:    "one that was taken down wants nothing",
			present: []installs.Present{acme(func(p *installs.Present) { p.State = "deprovisioned" })}, wanted: wants(func(w *installs.Wanted) { w.Inputs["port"] = "81" }),
			want: []installs.Decision{{Name: "acme", Action: installs.ActionUpdate, Kept: []string{"api_key"}, Changes: []installs.FieldChange{
				{Field: "inputs.port", Old: new("80"), New: new("81")},
			}}},
		},
		{
			name:    "what no file names is left alone, and one of another app is not told of",
			present: []installs.Present{acme(), acme(func(p *installs.Present) { p.Name, p.App = "other", "other-app" })},
			want:    []installs.Decision{{Name: "acme", Action: installs.ActionNotDeclared}},
		},
		{
			name: "lists and objects may be YAML, HCL or JSON",
			wanted: wants(func(w *installs.Wanted) {
				w.Inputs = installs.Values{"region": "eu", "zones": "- a\n- b\n", "limits": "{ cpu = 2 }"}
			}),
			want: []installs.Decision{{Name: "acme", Action: installs.ActionCreate, Next: installs.NextProvision, Changes: []installs.FieldChange{
				{Field: "customer", New: new("acme")}, {Field: "stack", New: new("local")}, {Field: "approval_option", New: new("prompt")},
				{Field: "inputs.limits", New: new("{ cpu = 2 }")}, {Field: "inputs.region", New: new("eu")}, {Field: "inputs.zones", New: new("- a\n- b\n")},
			}}},
		},
		{
			name:   "one that the customer may set too can be set, as by hand",
			wanted: wants(func(w *installs.Wanted) { w.Inputs = installs.Values{"region": "eu", "domain": "acme.test"} }),
			want: []installs.Decision{{Name: "acme", Action: installs.ActionCreate, Next: installs.NextProvision, Changes: []installs.FieldChange{
				{Field: "customer", New: new("acme")}, {Field: "stack", New: new("local")}, {Field: "approval_option", New: new("prompt")},
				{Field: "inputs.domain", New: new("acme.test")}, {Field: "inputs.region", New: new("eu")},
			}}},
		},
		{
			name: "what is said of components is told, and toggles want a deploy of all", present: []installs.Present{acme(func(p *installs.Present) { p.Toggles = installs.Toggles{"idle": true} })},
			wanted: wants(func(w *installs.Wanted) {
				w.Toggles = installs.Toggles{"web": false, "db": false}
				w.Overrides = installs.Overrides{"web": {HelmValues: "replicas: 3"}, "base": {TFVars: "size = 3"}, "db": {}}
			}),
			want: []installs.Decision{{Name: "acme", Action: installs.ActionUpdate, Next: installs.NextDeploy, Kept: []string{"api_key"}, Changes: []installs.FieldChange{
				{Field: "component_toggles.db", New: new("off")}, {Field: "component_toggles.idle", Old: new("on")}, {Field: "component_toggles.web", New: new("off")},
				{Field: "components.base.tf_vars", New: new("size = 3")}, {Field: "components.web.helm_values", New: new("replicas: 3")},
			}}},
		},
		{
			name: "an override wants a deploy of just its component", present: []installs.Present{acme(overriding("size = 1", "size = 1"))},
			wanted: wants(func(w *installs.Wanted) {
				w.Overrides = installs.Overrides{"base": {TFVars: "size = 2"}, "idle": {TFVars: "is = \"off\""}}
			}),
			want: []installs.Decision{{Name: "acme", Action: installs.ActionUpdate, Next: installs.NextDeploy, Components: []string{"base"}, Kept: []string{"api_key"}, Changes: []installs.FieldChange{
				{Field: "components.base.tf_vars", Old: new("size = 1"), New: new("size = 2")}, {Field: "components.idle.tf_vars", New: new("is = \"off\"")},
			}}},
		},
		{
			name: "an override that goes wants it too", present: []installs.Present{acme(overriding("size = 1", "size = 1"))},
			wanted: wants(func(w *installs.Wanted) { w.Overrides = installs.Overrides{} }),
			want: []installs.Decision{{Name: "acme", Action: installs.ActionUpdate, Next: installs.NextDeploy, Components: []string{"base"}, Kept: []string{"api_key"}, Changes: []installs.FieldChange{
				{Field: "components.base.tf_vars", Old: new("size = 1")},
			}}},
		},
		{
			name: "what no file says of components stays", present: []installs.Present{acme(overriding("size = 1", "size = 1"), func(p *installs.Present) { p.Toggles = installs.Toggles{"web": false} })},
			wanted: []installs.Wanted{asAcme()},
			want:   []installs.Decision{{Name: "acme", Action: installs.ActionUnchanged, Kept: []string{"api_key"}}},
		},
		{
			name: "an override that a deploy of its component took wants nothing more",
			present: []installs.Present{acme(overriding("size = 2", "size = 1"), func(p *installs.Present) {
				p.TakenAlone = map[string]installs.Taken{"base": {Version: 4, Inputs: inputs("80"), Overrides: p.Overrides}}
			})},
			wanted: []installs.Wanted{asAcme()},
			want:   []installs.Decision{{Name: "acme", Action: installs.ActionUnchanged, Kept: []string{"api_key"}}},
		},
		{
			name: "inputs that only one component took, and that are as before now, want that one again",
			present: []installs.Present{acme(func(p *installs.Present) {
				p.TakenAlone = map[string]installs.Taken{"base": {Version: 4, Inputs: inputs("81")}}
			})},
			wanted: []installs.Wanted{asAcme()},
			want:   []installs.Decision{{Name: "acme", Action: installs.ActionUnchanged, Next: installs.NextDeploy, Components: []string{"base"}, Kept: []string{"api_key"}}},
		},
		{
			name: "toggles that no workflow has taken yet want a deploy still", present: []installs.Present{acme(func(p *installs.Present) { p.TogglesVersion = 1 })},
			wanted: []installs.Wanted{asAcme()},
			want:   []installs.Decision{{Name: "acme", Action: installs.ActionUnchanged, Next: installs.NextDeploy, Kept: []string{"api_key"}}},
		},
		{
			name: "a toggle of what the app lets be switched no more goes", present: []installs.Present{acme(func(p *installs.Present) { p.Toggles = installs.Toggles{"base": false, "gone": true} })},
			wanted: wants(func(w *installs.Wanted) { w.Toggles = installs.Toggles{"base": false, "gone": true} }),
			want: []installs.Decision{{Name: "acme", Action: installs.ActionUpdate, Next: installs.NextDeploy, Kept: []string{"api_key"}, Changes: []installs.FieldChange{
				{Field: "component_toggles.base", Old: new("off")}, {Field: "component_toggles.gone", Old: new("on")},
			}}},
		},
		{
			name: "what is wrong of components is told at once", present: []installs.Present{acme()},
			wanted: wants(func(w *installs.Wanted) {
				w.Toggles = installs.Toggles{"db": false, "base": false, "bse": true}
				w.Overrides = installs.Overrides{"web": {TFVars: "a = 1", HelmValues: "- a"}, "base": {TFVars: "{"}, "gone": {TFVars: "a = 1"}}
			}),
			faults: []fault.FieldError{
				{Pointer: "/installs/0/component_toggles/base", Code: "not_toggleable", Detail: `component "base" is not toggleable`},
				{Pointer: "/installs/0/component_toggles/bse", Code: "unknown_component", Detail: `the app has no component "bse"`},
				{Pointer: "/installs/0/component_toggles/db", Code: "component_needed", Detail: `component "db" cannot be off while "web", which needs it, is on: dependencies at :0`},
				{Pointer: "/installs/0/components/base/tf_vars", Code: "value", Detail: "tf_vars: line 1 is not valid JSON: unexpected end of JSON input"},
				{Pointer: "/installs/0/components/gone", Code: "unknown_component", Detail: `the app has no component "gone"`},
				{Pointer: "/installs/0/components/web/helm_values", Code: "value", Detail: "helm_values: line 1 is YAML, but no mapping of keys to values"},
				{Pointer: "/installs/0/components/web/tf_vars", Code: "value", Detail: `tf_vars: component "web" is no Terraform module`},
			},
		},
		{
			name:    "everything wrong is told at once with its place, and no secret is",
			present: []installs.Present{acme(), acme(func(p *installs.Present) { p.Name, p.App = "taken", "other-app" })},
			wanted: []installs.Wanted{
				asAcme(func(w *installs.Wanted) { w.Customer = "globex" }),
				{Name: "taken", Inputs: installs.Values{"region": "eu"}},
				{Name: "new", Inputs: installs.Values{"grating": "Ahoy", "port": "many", "debug": "maybe", "zones": `{"a":1}`, "pin": secret}},
				asAcme(),
			},
			faults: []fault.FieldError{
				{Pointer: "/installs/0/customer", Code: "customer_differs", Detail: `install "acme" belongs to customer acme-corp and cannot move to globex`},
				{Pointer: "/installs/1/name", Code: "name_taken", Detail: `install "taken" belongs to app other-app`},
				{Pointer: "/installs/2/inputs/debug", Code: "value", Detail: `input "debug" must be "true" or "false"`},
				{Pointer: "/installs/2/inputs/grating", Code: "unknown_input", Detail: `the app has no input "grating"; did you mean greeting?`},
				{Pointer: "/installs/2/inputs/pin", Code: "value", Detail: `input "pin" is not a valid number`},
				{Pointer: "/installs/2/inputs/port", Code: "value", Detail: `input "port" must be a number`},
				{Pointer: "/installs/2/inputs/region", Code: "missing", Detail: `input "region" is required`},
				{Pointer: "/installs/2/inputs/zones", Code: "value", Detail: `input "zones" must be a list, not an object`},
				{Pointer: "/installs/3/name", Code: "duplicate", Detail: `install "acme" is declared twice`},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := installs.Plan(app(), tt.present, tt.wanted)
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreUnexported(installs.Decision{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			var faults []fault.FieldError
			if err != nil {
				faults = fault.From(err).Errors
			}
			if diff := cmp.Diff(tt.faults, faults); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}
