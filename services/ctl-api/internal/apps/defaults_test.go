package apps

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/services/internal/model"
)

func TestDefaultChanges(t *testing.T) {
	t.Parallel()
	input := func(name string, value *string) appconfig.Input { return appconfig.Input{Name: name, Default: value} }
	secret := input("greeting", new("Hello"))
	secret.Sensitive = true
	for _, tc := range []struct {
		name          string
		before, after []appconfig.Input
		set           []string
		want          []DefaultChange
	}{
		{name: "another default", before: []appconfig.Input{input("greeting", new("Ahoy"))}, after: []appconfig.Input{input("greeting", new("Hello"))},
			want: []DefaultChange{{Name: "greeting", Before: new("Ahoy"), After: new("Hello")}}},
		{name: "the same default", before: []appconfig.Input{input("greeting", new("Ahoy"))}, after: []appconfig.Input{input("greeting", new("Ahoy"))}},
		{name: "the install says it itself", before: []appconfig.Input{input("greeting", new("Ahoy"))}, after: []appconfig.Input{input("greeting", new("Hello"))}, set: []string{"greeting"}},
		{name: "a default that is new, and one that goes", before: []appconfig.Input{input("greeting", nil), input("motto", new(""))},
			after: []appconfig.Input{input("greeting", new("")), input("motto", nil)},
			want:  []DefaultChange{{Name: "greeting", After: new("")}, {Name: "motto", Before: new("")}}},
		{name: "an input that is new, and one that goes", before: []appconfig.Input{input("gone", new("x"))}, after: []appconfig.Input{input("new", new("x"))}},
		{name: "a sensitive one has no values", before: []appconfig.Input{input("greeting", new("Ahoy"))}, after: []appconfig.Input{secret},
			want: []DefaultChange{{Name: "greeting", Sensitive: true}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, defaultChanges(tc.before, tc.after, tc.set)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReaders(t *testing.T) {
	t.Parallel()
	component := func(name, text string) appconfig.Component {
		return appconfig.Component{Name: name, Type: appconfig.TypeTerraformModule, TerraformModule: &appconfig.TerraformModule{Vars: map[string]string{"text": text}}}
	}
	app := &appconfig.App{
		Inputs: []appconfig.Input{{Name: "greeting"}, {Name: "motto"}}, Sandbox: &appconfig.Sandbox{Vars: map[string]string{"m": "{{ .nuon.install.inputs.motto }}"}},
		Components: []appconfig.Component{
			component("api", "{{ .nuon.inputs.inputs.greeting }}"), component("web", "{{ .nuon.inputs.inputs.greeting }}"),
			component("all", "{{ range .nuon.inputs.inputs }}{{ . }}{{ end }}"), component("db", "plain"),
		},
	}
	var d Decision
	for _, name := range []string{"api", "web", "all", "db"} {
		d.Items = append(d.Items, ItemDecision{item: item{Kind: model.KindComponent, Name: name}})
	}
	d.Items = append(d.Items, ItemDecision{item: item{Kind: model.KindSandbox, Name: SandboxName}})
	web := Effect{Kind: model.KindComponent, Name: "web", Effect: EffectChanges, Reason: "another build"}
	may := func(kind model.ResourceKind, name, reason string) Effect {
		return Effect{Kind: kind, Name: name, Effect: EffectMayChange, Reason: reason}
	}
	for _, tc := range []struct {
		name  string
		moved []DefaultChange
		want  []Effect
	}{
		{name: "nothing moves", want: []Effect{web}},
		{name: "those that read it, if nothing is said of them yet", moved: []DefaultChange{{Name: "greeting"}}, want: []Effect{
			web, may(model.KindComponent, "api", "reads the input greeting, whose default changes"),
			may(model.KindComponent, "all", "reads the input greeting, whose default changes"),
		}},
		{name: "the sandbox, which a deploy leaves alone", moved: []DefaultChange{{Name: "motto"}}, want: []Effect{
			web, may(model.KindComponent, "all", "reads the input motto, whose default changes"),
			may(model.KindSandbox, SandboxName, "reads the input motto, whose default changes"+onlyProvision),
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, readers([]Effect{web}, d, app, tc.moved)); diff != "" {
				t.Errorf("effects (-want +got):\n%s", diff)
			}
		})
	}
}
