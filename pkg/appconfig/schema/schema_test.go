package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/berth-dev/berth/pkg/appconfig/schema"
)

func schemaOf(t *testing.T, kind string) map[string]any {
	t.Helper()
	data, err := schema.Of(kind)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := schema.Of(kind); !bytes.Equal(data, again) {
		t.Errorf("%s: two calls gave two schemas", kind)
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSchemas holds that each kind has a closed schema in which every key is
// described.
func TestSchemas(t *testing.T) {
	t.Parallel()
	for _, kind := range schema.Kinds() {
		s := schemaOf(t, kind.Name)
		if s["$schema"] != "https://json-schema.org/draft/2020-12/schema" || s["description"] == "" {
			t.Errorf("%s: $schema is %v, description %v", kind.Name, s["$schema"], s["description"])
		}
		described(t, kind.Name, s)
		if s["additionalProperties"] != kind.Open {
			t.Errorf("%s: additionalProperties is %v", kind.Name, s["additionalProperties"])
		}
		for _, key := range kind.Keys() {
			if key.Doc == "" {
				t.Errorf("%s: %s is not described", kind.Name, key.Path)
			}
		}
	}
	if _, err := schema.Of("components"); err == nil || !strings.Contains(err.Error(), "component-root") {
		t.Errorf("an unknown schema: got %v", err)
	}
	sandbox := schemaOf(t, "sandbox")["properties"].(map[string]any)["type"].(map[string]any)
	if sandbox["default"] != "terraform" || fmt.Sprint(sandbox["enum"]) != "[terraform pulumi]" {
		t.Errorf("type of sandbox: got %v", sandbox)
	}
}

func described(t *testing.T, at string, s map[string]any) {
	t.Helper()
	properties, _ := s["properties"].(map[string]any)
	for name, p := range properties {
		property := p.(map[string]any)
		if text, _ := property["description"].(string); text == "" {
			t.Errorf("%s.%s has no description", at, name)
		}
		described(t, at+"."+name, property)
	}
}

// TestSchemasAcceptExamples holds schemas and parser together: what the parser
// takes without a word, the schema of its kind takes.
func TestSchemasAcceptExamples(t *testing.T) {
	t.Parallel()
	count := 0
	for _, dir := range []string{"hello", "shop", "kitchen-sink", "kitchen-sink/variants/files", "kitchen-sink/variants/one-file"} {
		root := os.DirFS("../../../examples/" + dir)
		err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || path.Ext(name) != ".toml" {
				return err
			}
			data, err := fs.ReadFile(root, name)
			if err != nil {
				return err
			}
			var values map[string]any
			if err := toml.Unmarshal(data, &values); err != nil {
				return err
			}
			typeName, _ := values["type"].(string)
			kind, ok := schema.KindOf(name, typeName)
			if !ok {
				return nil // merged into another file
			}
			count++
			for _, problem := range violations(schemaOf(t, kind.Name), values, "") {
				t.Errorf("%s/%s as %s: %s", dir, name, kind.Name, problem)
			}
			if kind.Open {
				return nil // any key may be a plugin's
			}
			values["surprise"] = true
			if got := violations(schemaOf(t, kind.Name), values, ""); len(got) != 1 || !strings.Contains(got[0], "surprise") {
				t.Errorf("%s/%s with an unknown key: got %v", dir, name, got)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if count < 50 {
		t.Errorf("only %d files were tried", count)
	}
}

func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, kind, contents, want string }{
		{"missing key", "action", `name = "x"`, "steps"},
		{"missing key with source", "action", `source = "./x.toml"`, ""},
		{"wrong type", "action", "name = 1\nsteps = []", "name"},
		{"not allowed", "runner", `runner_type = "mars"`, "runner_type"},
		{"duration", "terraform", "type = \"terraform_module\"\nname = \"a\"\nterraform_version = \"1.11.4\"\ndeploy_timeout = \"soon\"", "deploy_timeout"},
		{"free map", "runner", "runner_type = \"aws\"\nenv_vars = {a = 1, b = true}", ""},
		{"component in one file", "full", "version = \"v1\"\n[[components]]\ntype = \"job\"\nname = \"a\"\nimage_url = \"x\"\ntag = \"1\"\nargs = [\"x\"]", ""},
		{"wrong component in one file", "full", "version = \"v1\"\n[[components]]\ntype = \"job\"\nname = \"a\"", "components"},
		{"plugin in one file", "full", "version = \"v1\"\n[[components]]\ntype = \"ansible\"\nname = \"a\"\nplaybook = \"x\"", ""},
		{"list in a free map", "runner", "runner_type = \"aws\"\nenv_vars = {a = []}", "env_vars"},
	}
	for _, tt := range tests {
		var values map[string]any
		if err := toml.Unmarshal([]byte(tt.contents), &values); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(violations(schemaOf(t, tt.kind), values, ""), "; ")
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) || tt.want != "" && got == "" {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// violations checks a value by those words of JSON Schema that ours use.
func violations(s map[string]any, value any, at string) []string {
	var found []string
	if options, ok := s["anyOf"].([]any); ok {
		for _, option := range options {
			if len(violations(option.(map[string]any), value, at)) == 0 {
				return nil
			}
		}
		return violations(options[0].(map[string]any), value, at)
	}
	if !hasType(s["type"], value) {
		return []string{fmt.Sprintf("%s: %v is not %v", at, value, s["type"])}
	}
	if allowed, ok := s["enum"].([]any); ok && !slices.Contains(allowed, value) {
		found = append(found, fmt.Sprintf("%s: %v is none of %v", at, value, allowed))
	}
	if not, ok := s["not"].(map[string]any); ok && slices.Contains(not["enum"].([]any), value) {
		found = append(found, fmt.Sprintf("%s: %v is one of %v", at, value, not["enum"]))
	}
	if pattern, ok := s["pattern"].(string); ok && !regexp.MustCompile(pattern).MatchString(value.(string)) {
		found = append(found, fmt.Sprintf("%s: %v does not match", at, value))
	}
	switch v := value.(type) {
	case []any:
		for i, item := range v {
			if items, ok := s["items"].(map[string]any); ok {
				found = append(found, violations(items, item, fmt.Sprintf("%s[%d]", at, i))...)
			}
		}
	case map[string]any:
		found = append(found, inObject(s, v, at)...)
	}
	return found
}

func inObject(s, v map[string]any, at string) []string {
	var found []string
	properties, _ := s["properties"].(map[string]any)
	for key, item := range v {
		if p, ok := properties[key]; ok {
			found = append(found, violations(p.(map[string]any), item, at+"."+key)...)
		} else if more, ok := s["additionalProperties"].(map[string]any); ok {
			found = append(found, violations(more, item, at+"."+key)...)
		} else if s["additionalProperties"] == false {
			found = append(found, at+"."+key+" is unknown")
		}
	}
	required, _ := s["required"].([]any)
	if then, ok := s["then"].(map[string]any); ok && v["source"] == nil {
		required, _ = then["required"].([]any)
	}
	for _, key := range required {
		if _, ok := v[key.(string)]; !ok {
			found = append(found, at+"."+key.(string)+" is missing")
		}
	}
	return found
}

func hasType(allowed any, value any) bool {
	list, ok := allowed.([]any)
	if !ok {
		list = []any{allowed}
	}
	var is []any
	switch value.(type) {
	case string:
		is = []any{"string"}
	case bool:
		is = []any{"boolean"}
	case int64:
		is = []any{"integer", "number"}
	case float64:
		is = []any{"number"}
	case []any:
		is = []any{"array"}
	case map[string]any:
		is = []any{"object"}
	}
	return slices.ContainsFunc(list, func(t any) bool { return slices.Contains(is, t) })
}
