package schema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/berth-dev/berth/pkg/appconfig/schema"
)

// An editor completes and checks the keys of an app's own plugins as it does those of
// the format.
func TestSchemaOfAPlugin(t *testing.T) {
	t.Parallel()
	plugin := schema.Plugin{Type: "greeting", Config: json.RawMessage(`{"type": "object", "properties": {
		"text": {"type": "string", "description": "What it says."}, "count": {"type": "integer", "default": 1},
		"place": {"type": "string", "pattern": "^[a-z]+$"}, "name": {"type": "integer"},
		"users": {"type": "array", "items": {"type": "object", "properties": {"age": {"type": "integer"}}, "additionalProperties": false}}}, "required": ["text"]}`)}
	of := func(kind string) (s map[string]any) {
		raw, err := schema.Of(kind, plugin)
		if err == nil {
			err = json.Unmarshal(raw, &s)
		}
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	const good = "type = \"greeting\"\nname = \"a\"\ntext = \"x\"\n"
	const end = "[berth.plugin]\nsigner = \"k\"\n"
	for _, tc := range []struct{ name, text, want string }{
		{"right", good + "count = 2\nplace = \"hall\"\n" + end, ""},
		{"templates", good + "count = \"{{ .nuon.inputs.n }}\"\nplace = \"{{ .nuon.x }}\"\nusers = [{age = \"{{ .nuon.x }}\"}]\n" + end, ""},
		{"not a number", good + "count = \"two\"\n" + end, "count"},
		{"not the pattern", good + "place = \"Hall\"\n" + end, "place"},
		{"inside of a list", good + "users = [{agee = 1}]\n" + end, "agee"},
		{"unknown", good + "txet = \"x\"\n" + end, "txet is unknown"},
		{"missing", "type = \"greeting\"\nname = \"a\"\n" + end, "text is missing"},
		{"no grant", good, "berth is missing"},
		{"another type", strings.Replace(good, "greeting", "greetings", 1) + end, "type"},
	} {
		var values map[string]any
		if err := toml.Unmarshal([]byte(tc.text), &values); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(violations(of("plugin-greeting"), values, ""), "; "); tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	for text, want := range map[string]bool{"text = \"x\"": true, "txet = \"x\"": false} {
		var values map[string]any
		if err := toml.Unmarshal([]byte("version = \"v1\"\n[[components]]\ntype = \"greeting\"\nname = \"a\"\n"+text+"\n[components.berth.plugin]\nsigner = \"k\"\n"), &values); err != nil {
			t.Fatal(err)
		}
		if got := violations(of("full"), values, ""); (len(got) == 0) != want {
			t.Errorf("%s in one file: %v", text, got)
		}
	}
}
