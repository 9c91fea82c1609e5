package check_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/plugin"
)

const greetingManifest = `{"contract": 1, "type": "greeting", "version": "1", "executables": {"any": "run.sh"}, "permissions": {"state": true},
	"config": {"properties": {"text": {"type": "string"}, "place": {"type": "string", "pattern": "^[a-z]+$", "default": "hall"},
	"count": {"type": "integer", "default": 1000000}, "token": {"type": "string", "writeOnly": true},
	"users": {"type": "array", "items": {"type": "object", "properties": {"age": {"type": "integer"}}}}}, "required": ["text"]}}`

const greetingComponent = `name = "hello"
type = "greeting"
text = "ahoy"
KEYS
[berth]
local_source = "plugins/greeting"
[berth.plugin]
signer = "SIGNER"
state = true
`

// pluginFolder is an app folder with one component of a plugin's, signed.
func pluginFolder(t *testing.T, keys string, edit func(fstest.MapFS)) fstest.MapFS {
	t.Helper()
	pub, key, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	signed := fstest.MapFS{"plugin.json": &fstest.MapFile{Data: []byte(greetingManifest)}, "run.sh": &fstest.MapFile{Data: []byte("#!/bin/sh\n")}}
	envelope, err := plugin.Sign(key, signed)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(envelope)
	if err != nil {
		t.Fatal(err)
	}
	component := strings.NewReplacer("KEYS", keys, "SIGNER", capsule.EncodePublicKey(pub)).Replace(greetingComponent)
	all := fstest.MapFS{
		"metadata.toml": &fstest.MapFile{Data: []byte("version = \"v2\"\ndisplay_name = \"x\"\n")},
		"runner.toml":   &fstest.MapFile{Data: []byte("runner_type = \"local\"\n")}, "stack.toml": &fstest.MapFile{Data: []byte("type = \"local\"\n")},
		"sandbox.toml":                     &fstest.MapFile{Data: []byte("terraform_version = \"1.11.4\"\n[public_repo]\nrepo = \"a/b\"\n")},
		"components/hello.toml":            &fstest.MapFile{Data: []byte(component)},
		"plugins/greeting/plugin.sig.json": &fstest.MapFile{Data: raw},
		"plugins/greeting/plugin.json":     signed["plugin.json"], "plugins/greeting/run.sh": signed["run.sh"],
	}
	if edit != nil {
		edit(all)
	}
	return all
}

func TestPluginConfigs(t *testing.T) {
	t.Parallel()
	change := func(name, from, to string) func(fstest.MapFS) {
		return func(f fstest.MapFS) {
			f[name] = &fstest.MapFile{Data: []byte(strings.Replace(string(f[name].Data), from, to, 1))}
		}
	}
	const component, manifest = "components/hello.toml", "plugins/greeting/plugin.json"
	for _, tc := range []struct {
		name, keys string
		edit       func(fstest.MapFS)
		want       string // "" is nothing
	}{
		{"right", "place = \"cellar\"", nil, ""},
		{"a template fits everything", "count = \"{{ .nuon.install.name }}\"\ntoken = \"{{ .nuon.install.name }}\"", nil, ""},
		{"a misspelt key", "plaec = \"hall\"", nil, `components/hello.toml:4:1 error plaec: is no key of this plugin: did you mean "place"?`},
		{"not the pattern", "place = \"Hall\"", nil, "components/hello.toml:4:1 error place: does not match ^[a-z]+$"},
		{"inside of a list", "users = [{age = \"x\"}]", nil, "components/hello.toml:4:11 error users[0].age: is not a number"},
		{"a key that is missing", "", change(component, "text = \"ahoy\"\n", ""), "components/hello.toml:2:1 error text: is missing"},
		{"a secret in clear", "token = \"hunter2\"", nil, "components/hello.toml:4:1 warning token is a secret of plugin greeting, and stands in the app folder in clear"},
		{"a permission that is not granted", "", change(component, "state = true\n", ""), "error plugin greeting asks for state, which the component does not grant"},
		{"another type", "", change(component, "\"greeting\"", "\"greetings\""), `components/hello.toml:2:1 error the plugin deploys components of type "greeting", this one is of type "greetings"`},
		{"changed after it was signed", "", change("plugins/greeting/run.sh", "sh", "sh -x"), "warning runners will refuse plugin greeting: signature of the plugin refused: run.sh is sha256:"},
		{"a schema that points elsewhere", "", change(manifest, `{"type": "string"}`, `{"$ref": "http://192.0.2.1/schema.json"}`), `error the plugin cannot be used: plugin.json: json: unknown field "$ref"`},
		{"a key of every component", "", change(manifest, `"place"`, `"labels": {}, "place"`), `error plugin greeting has a key "labels", which is one of every component's`},
	} {
		_, diags := check.Format(pluginFolder(t, tc.keys, tc.edit), appconfig.LoadOptions{})
		got := ""
		for _, d := range diags {
			if d.Severity != place.Note {
				got += fmt.Sprintln(d)
			}
		}
		if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%s:\n%swant %s", tc.name, got, tc.want)
		}
	}
}

// What a component leaves out is shown with what its plugin fills in.
func TestCompletePlugins(t *testing.T) {
	t.Parallel()
	folder := pluginFolder(t, "users = [{age = 3}]", nil)
	app, diags := check.Format(folder, appconfig.LoadOptions{})
	if place.HasErrors(diags) {
		t.Fatal(diags)
	}
	defaults := check.CompletePlugins(folder, appconfig.LoadOptions{}, app)
	got := ""
	for _, b := range check.Blocks(app) {
		if b.Name != "hello" {
			continue
		}
		values, _ := check.Previews(app, b, check.MadeUpState(app), check.PreviewOptions{Defaults: defaults})
		for _, v := range values {
			got += fmt.Sprintf("%s=%s %v\n", v.Key, v.Value, v.Default)
		}
	}
	if want := "count=1000000 true\nplace=hall true\ntext=ahoy false\nusers[0].age=3 false\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
