package configdiff_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/configdiff"
)

// folder is a small app folder.
func folder() map[string]string {
	return map[string]string{
		"metadata.toml": "version = \"v2\"\ndisplay_name = \"Hello\"\n",
		"runner.toml":   "runner_type = \"local\"\n",
		"stack.toml":    "type = \"local\"\nname = \"hello\"\ndescription = \"Runs here.\"\n",
		"sandbox.toml":  "terraform_version = \"1.11.4\"\n[berth]\nlocal_source = \"src/sandbox\"\n",
		"components/api.toml": "name = \"api\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.4\"\n" +
			"[berth]\nlocal_source = \"src/api\"\n[vars]\ntext = \"Ahoy\"\n\"a.b\" = \"1\"\n",
		"inputs.toml": `
[[group]]
name = "all"
display_name = "All"
description = "All inputs."
[[input]]
name = "greeting"
display_name = "Greeting"
description = "What is said."
group = "all"
default = "Ahoy"
[[input]]
name = "api_key"
display_name = "API key"
description = "A secret."
group = "all"
default = "canary-old"
sensitive = true
`,
		"secrets.toml":      "[[secret]]\nname = \"db\"\ndescription = \"A password.\"\ndefault = \"canary-old\"\n",
		"installs/one.toml": "name = \"one\"\n[inputs]\napi_key = \"canary-old\"\ngreeting = \"Hi\"\n",
		"actions/look.toml": `
name = "look"
timeout = "30s"
[[triggers]]
type = "manual"
[[steps]]
name = "first"
inline_contents = "true"
[[steps]]
name = "second"
inline_contents = "echo 1"
`,
	}
}

// version reads a folder as a sync does and a comparison finds it: through the
// stored JSON.
func version(t *testing.T, files map[string]string) configdiff.Version {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	app, diagnostics := appconfig.Load(fsys, appconfig.LoadOptions{SkipSources: true})
	if place.HasErrors(diagnostics) {
		t.Fatal(diagnostics)
	}
	raw, err := json.Marshal(app)
	if err != nil {
		t.Fatal(err)
	}
	v := configdiff.Version{App: &appconfig.App{}, Items: map[string]configdiff.Item{}}
	if err := json.Unmarshal(raw, v.App); err != nil {
		t.Fatal(err)
	}
	if s := app.Sandbox; s != nil {
		v.Items["sandbox"] = configdiff.Item{BuildDigest: s.BuildDigest(""), DeployDigest: s.DeployDigest()}
	}
	for _, c := range app.Components {
		v.Items["component/"+c.Name] = configdiff.Item{BuildDigest: c.BuildDigest(""), DeployDigest: c.DeployDigest()}
	}
	return v
}

// changed returns the folder with texts in its files replaced.
func changed(pairs ...string) map[string]string {
	files := maps.Clone(folder())
	for i := 0; i+2 < len(pairs); i += 3 {
		files[pairs[i]] = strings.Replace(files[pairs[i]], pairs[i+1], pairs[i+2], 1)
	}
	return files
}

func TestCompare(t *testing.T) {
	t.Parallel()
	type objects = []configdiff.Object
	type fields = []configdiff.Field
	with := func(name, text string) map[string]string {
		files := folder()
		if files[name] = text; text == "" {
			delete(files, name)
		}
		return files
	}
	for _, tc := range []struct {
		name  string
		after map[string]string
		want  objects
	}{
		{name: "the same folder", after: folder()},
		{name: "comments and another file make no difference", after: func() map[string]string {
			files := folder()
			files["components/deep/er.toml"] = "# moved\n" + files["components/api.toml"]
			delete(files, "components/api.toml")
			return files
		}()},
		{name: "a value that is only deployed", after: changed("components/api.toml", `"Ahoy"`, `"Hi"`), want: objects{
			{Kind: "component", Name: "api", Change: "changed", Deploy: true, Fields: fields{{"terraform_module.vars.text", `"Ahoy"`, `"Hi"`}}},
		}},
		{name: "a key with a dot in it", after: changed("components/api.toml", `"a.b" = "1"`, `"a.b" = "<2>"`), want: objects{
			{Kind: "component", Name: "api", Change: "changed", Deploy: true, Fields: fields{{"terraform_module.vars[a.b]", `"1"`, `"<2>"`}}},
		}},
		{name: "a value that is built", after: changed("sandbox.toml", "1.11.4", "1.12.0"), want: objects{
			{Kind: "sandbox", Change: "changed", Build: true, Fields: fields{{"terraform_version", `"1.11.4"`, `"1.12.0"`}}},
		}},
		{name: "a component that is new", after: with("components/web.toml", strings.ReplaceAll(folder()["components/api.toml"], "api", "web")), want: objects{
			{Kind: "component", Name: "web", Change: "added", Build: true, Deploy: true},
		}},
		{name: "a component that is gone", after: with("components/api.toml", ""), want: objects{
			{Kind: "component", Name: "api", Change: "removed", Build: true, Deploy: true},
		}},
		{name: "a duration written otherwise", after: changed("actions/look.toml", "30s", "0m30s")},
		{name: "a duration", after: changed("actions/look.toml", "30s", "90s"), want: objects{
			{Kind: "action", Name: "look", Change: "changed", Fields: fields{{"timeout", `"30s"`, `"1m30s"`}}},
		}},
		{name: "a step by its name", after: changed("actions/look.toml", "echo 1", "echo 2"), want: objects{
			{Kind: "action", Name: "look", Change: "changed", Fields: fields{{"steps[second].inline_contents.contents", `"echo 1"`, `"echo 2"`}}},
		}},
		{name: "steps in another order", after: changed("actions/look.toml", `"first"`, `"x"`, "actions/look.toml", `"second"`, `"first"`,
			"actions/look.toml", `"x"`, `"second"`, "actions/look.toml", `"true"`, `"y"`, "actions/look.toml", `"echo 1"`, `"true"`, "actions/look.toml", `"y"`, `"echo 1"`), want: objects{
			{Kind: "action", Name: "look", Change: "changed", Fields: fields{{"steps", `["first","second"]`, `["second","first"]`}}},
		}},
		{name: "what there is one of", after: changed("metadata.toml", "Hello", "Hullo"), want: objects{
			{Kind: "metadata", Change: "changed", Fields: fields{{"display_name", `"Hello"`, `"Hullo"`}}},
		}},
		{name: "a default that is not secret", after: changed("inputs.toml", `"Ahoy"`, `""`), want: objects{
			{Kind: "input", Name: "greeting", Change: "changed", Fields: fields{{"default", `"Ahoy"`, `""`}}},
		}},
		{name: "what nobody may see", after: changed("inputs.toml", "canary-old", "canary-new", "secrets.toml", "canary-old", "canary-new",
			"installs/one.toml", "canary-old", "canary-new"), want: objects{ // installs are no part of the app
			{Kind: "input", Name: "api_key", Change: "changed", Fields: fields{{"default", "(sensitive)", "(sensitive)"}}},
			{Kind: "secret", Name: "db", Change: "changed", Fields: fields{{"default", "(sensitive)", "(sensitive)"}}},
		}},
		{name: "an input that is no longer sensitive", after: changed("inputs.toml", "sensitive = true", "", "inputs.toml", "canary-old", "seen"), want: objects{
			{Kind: "input", Name: "api_key", Change: "changed", Fields: fields{{"default", "(sensitive)", "(sensitive)"}, {"sensitive", "true", ""}}},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			before, after := version(t, folder()), version(t, tc.after)
			if diff := cmp.Diff(tc.want, configdiff.Compare(before, after)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if back := configdiff.Compare(after, before); len(back) != len(tc.want) {
				t.Errorf("%d objects differ the other way round, want %d", len(back), len(tc.want))
			}
		})
	}
}

// Sources and artifacts are no part of the folder, and are told all the same.
func TestCompareItems(t *testing.T) {
	t.Parallel()
	before, after := version(t, folder()), version(t, folder())
	before.Items["component/api"] = configdiff.Item{BuildDigest: "b1", DeployDigest: "d", Content: "c1", Artifact: "a1"}
	after.Items["component/api"] = configdiff.Item{BuildDigest: "b2", DeployDigest: "d", Content: "c2", Artifact: "a2"}
	want := []configdiff.Object{{Kind: "component", Name: "api", Change: "changed", Build: true, Fields: []configdiff.Field{
		{"artifact.digest", `"a1"`, `"a2"`}, {"source.digest", `"c1"`, `"c2"`},
	}}}
	if diff := cmp.Diff(want, configdiff.Compare(before, after)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	none := configdiff.Version{}
	for _, o := range configdiff.Compare(none, before) {
		if o.Change != configdiff.Added {
			t.Errorf("against nothing, %s %s is %s, want added", o.Kind, o.Name, o.Change)
		}
	}
}

// A block that the language gets later is compared, and the contract names it.
func TestEveryBlockIsCompared(t *testing.T) {
	t.Parallel()
	spec, err := apigen.GetSpec()
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, v := range spec.Components.Schemas["DiffObject"].Value.Properties["kind"].Value.Enum {
		named = append(named, v.(string))
	}
	var told []string
	app := reflect.TypeFor[appconfig.App]()
	for i := range app.NumField() {
		f := app.Field(i)
		if !f.IsExported() || f.Tag.Get("digest") == "-" { // no part of what an app is
			continue
		}
		// Full of one thing each: what is compared is then told as added.
		v := configdiff.Version{App: &appconfig.App{}}
		value := reflect.ValueOf(v.App).Elem().Field(i)
		switch f.Type.Kind() {
		case reflect.Slice:
			value.Set(reflect.MakeSlice(f.Type, 1, 1))
		case reflect.Pointer:
			value.Set(reflect.New(f.Type.Elem()))
		}
		var kinds []string
		for _, o := range configdiff.Compare(configdiff.Version{}, v) {
			kinds = append(kinds, o.Kind)
		}
		kinds = slices.DeleteFunc(kinds, func(k string) bool { return k == "metadata" && f.Name != "Metadata" })
		if len(kinds) != 1 {
			t.Errorf("%s is told as %q, want one kind", f.Name, kinds)
		}
		told = append(told, kinds...)
	}
	slices.Sort(named)
	slices.Sort(told)
	if diff := cmp.Diff(named, told); diff != "" {
		t.Errorf("kinds of the contract and of the language (-contract +language):\n%s", diff)
	}
}
