package foresight_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/services/ctl-api/internal/foresight"
	"github.com/berth-dev/berth/services/internal/model"
)

func component(name string) foresight.Source {
	return foresight.Source{Kind: foresight.SourceComponent, Name: name}
}

func TestReads(t *testing.T) {
	t.Parallel()
	vars := func(values ...string) *appconfig.TerraformModule {
		m := &appconfig.TerraformModule{Vars: map[string]string{}}
		for i, v := range values {
			m.Vars[string(rune('a'+i))] = v
		}
		return m
	}
	app := &appconfig.App{
		Sandbox: &appconfig.Sandbox{Vars: map[string]string{"dir": "{{ .nuon.install_stack.outputs.install_dir }}"}},
		Components: []appconfig.Component{
			{Name: "greeting", VarName: "hello", Type: appconfig.TypeTerraformModule, TerraformModule: vars("{{ .nuon.sandbox.outputs.data_dir }}", "{{ .nuon.inputs.inputs.greeting }}")},
			{Name: "card", Type: appconfig.TypeTerraformModule, TerraformModule: vars(
				"{{ .nuon.components.greeting.outputs.text }} {{ .berth.components.hello.outputs.text }}",
				"{{ .nuon.components.image.image.tag }}", "{{ .nuon.install.sandbox.outputs.data_dir }}",
				"{{ .nuon.actions.workflows.seed.outputs.rows }}", "{{ .nuon.components.greeting.status }}",
				"{{ .nuon.components.nobody.outputs.x }}",
			)},
			{Name: "all", Type: appconfig.TypeTerraformModule, TerraformModule: vars("{{ range $n, $c := .nuon.components }}{{ $n }}{{ end }}")},
			{Name: "image"},
		},
		Actions: []appconfig.Action{{Name: "seed", Steps: []appconfig.Step{{Name: "one", EnvVars: map[string]string{"X": "{{ .nuon.components.greeting.outputs.text }}"}}}}},
	}
	for _, tt := range []struct {
		name     string
		of       foresight.Source
		override appconfig.InstallComponent
		want     []string
	}{
		{name: "inputs and the stack are known", of: foresight.Source{Kind: foresight.SourceSandbox}},
		{name: "the sandbox's output", of: component("greeting"), want: []string{"sandbox.data_dir"}},
		{name: "what the install overrides reads too", of: component("greeting"), override: appconfig.InstallComponent{TFVars: `x = "{{ .nuon.components.card.outputs.size }}"`},
			want: []string{"sandbox.data_dir", "card.size"}},
		{name: "outputs by either name, images, actions, and a status", of: component("card"),
			want: []string{"greeting.text", "image.image", "sandbox.data_dir", "action seed.rows", "greeting"}},
		{name: "a template that goes through all components reads each other one", of: component("all"), want: []string{"greeting", "card", "image"}},
		{name: "a script reads as well", of: foresight.Source{Kind: foresight.SourceAction, Name: "seed"}, want: []string{"greeting.text"}},
		{name: "what the app no longer has reads nothing", of: component("gone")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, r := range foresight.Reads(foresight.Block{App: app, Source: tt.of, Override: tt.override}) {
				got = append(got, r.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("reads (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	text, whatever := foresight.Read{Source: component("greeting"), Output: "text"}, foresight.Read{Source: component("greeting")}
	may := func(reads string, absent bool) []model.MayChange {
		return []model.MayChange{{Reads: reads, Of: "greeting", Absent: absent}}
	}
	for _, tt := range []struct {
		name     string
		read     foresight.Read
		greeting foresight.Known
		want     []model.MayChange
	}{
		{name: "what stays as it is hides nothing", read: text, greeting: foresight.Known{Live: true, There: []string{"text"}}},
		{name: "what stays absent is for the plan itself to say", read: text},
		{name: "the output that the plan changes", read: text, want: may("greeting.text", false),
			greeting: foresight.Known{Changes: true, Exact: true, Outputs: []string{"size", "text"}, Live: true, There: []string{"text"}}},
		{name: "a plan that names its outputs and changes another one", read: text,
			greeting: foresight.Known{Changes: true, Exact: true, Outputs: []string{"size"}, Live: true, There: []string{"size", "text"}}},
		{name: "a plan that names no outputs may change each", read: text, want: may("greeting.text", false),
			greeting: foresight.Known{Changes: true, Live: true, There: []string{"text"}}},
		{name: "a template that may read any output", read: whatever, want: may("greeting", false),
			greeting: foresight.Known{Changes: true, Exact: true, Outputs: []string{"size"}, Live: true, There: []string{"size"}}},
		{name: "an output that only the new release makes", read: text, want: may("greeting.text", true),
			greeting: foresight.Known{Changes: true, Exact: true, Outputs: []string{"text"}, Live: true, There: []string{"size"}}},
		{name: "what is made for the first time", read: whatever, want: may("greeting", true), greeting: foresight.Known{Changes: true, Exact: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := foresight.Of([]foresight.Read{tt.read, {Source: component("other"), Output: "x"}}, map[foresight.Source]foresight.Known{component("greeting"): tt.greeting})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("what may change (-want +got):\n%s", diff)
			}
			if want := len(tt.want) > 0 && tt.want[0].Absent; foresight.Blind(got) != want {
				t.Errorf("Blind says %t, want %t", !want, want)
			}
		})
	}
}
