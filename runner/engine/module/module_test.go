package module

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func read(t *testing.T, files map[string]string) (*Module, error) {
	t.Helper()
	dir := t.TempDir()
	for name, contents := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(contents), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Read(dir, false)
}

// OpenTofu reads its own files in the place of Terraform's, and may be told to encrypt.
func TestReadOpenTofu(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, contents := range map[string]string{
		"main.tf":              "variable \"old\" {}\n",
		"main.tofu":            "variable \"new\" {}\nterraform {\n  encryption {}\n}\n",
		"x_override.tofu.json": `{"variable": {"new": {"default": 1}}}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(contents), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m, err := Read(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := m.Variables["new"]; !ok || v.Required || len(m.Variables) != 1 || m.EncryptionAt != "main.tofu:3" {
		t.Errorf("OpenTofu reads %+v", m)
	}
	if diff := cmp.Diff([]string{"main.tofu", "x_override.tofu.json"}, m.Files); diff != "" {
		t.Errorf("files of OpenTofu (-want +got):\n%s", diff)
	}
	if m, err = Read(dir, false); err != nil || len(m.Variables) != 1 || m.EncryptionAt != "" || len(m.Files) != 1 {
		t.Errorf("Terraform reads %+v, %v", m, err)
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	got, err := read(t, map[string]string{
		"main.tf": "terraform {\n  backend \"http\" {}\n}\nmodule \"net\" {\n  source = \"./net\"\n}\n",
		"vars.tf": `
variable "plain" {}
variable "old" { type = "list" }
variable "text" {
  type      = string
  default   = "x"
  sensitive = true
}
variable "sizes" { type = map(object({ n = number })) }
`,
		"more.tf.json":     `{"variable": {"from_json": {"type": "number", "ephemeral": true}}}`,
		"vars_override.tf": "variable \"plain\" {\n  default = 1\n}\n",
		"notes.md":         "variable {",
		".hidden.tf":       "variable {",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := &Module{
		Backend: "http", BackendAt: "main.tf:2",
		Calls: []Call{{Name: "net", Source: "./net", At: "main.tf:4"}},
		Files: []string{"main.tf", "more.tf.json", "vars.tf", "vars_override.tf"},
		Variables: map[string]Variable{
			"plain":     {Name: "plain", At: "vars.tf:2"},
			"old":       {Name: "old", Kind: Collection, Type: `"list"`, Required: true, At: "vars.tf:3"},
			"text":      {Name: "text", Kind: String, Type: "string", Sensitive: true, At: "vars.tf:4"},
			"sizes":     {Name: "sizes", Kind: Collection, Type: "map(object({ n = number }))", Required: true, At: "vars.tf:9"},
			"from_json": {Name: "from_json", Kind: Number, Type: `"number"`, Required: true, Ephemeral: true, At: "more.tf.json:1"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("module (-want +got):\n%s", diff)
	}
}

func TestReadTellsWhereTheSyntaxIsWrong(t *testing.T) {
	t.Parallel()
	_, err := read(t, map[string]string{"a.tf": "x = = 1\n", "b.tf": "resource {\n"})
	if err == nil || !strings.Contains(err.Error(), "a.tf:1: ") || !strings.Contains(err.Error(), "b.tf:") {
		t.Errorf("error %v", err)
	}
	if _, err := read(t, map[string]string{"README.md": "x"}); err != ErrNoModule { //nolint:errorlint // returned as it is
		t.Errorf("error %v, want %v", err, ErrNoModule)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		kind Kind
		text string
		want string // JSON; "" means an error
	}{
		{"a string stays", String, " 007 ", `" 007 "`},
		{"JSON in a string stays", String, `{"a": 1}`, `"{\"a\": 1}"`},
		{"without a type it is a string", Untyped, "[1]", `"[1]"`},
		{"a number", Number, " 12345678901234567890 ", "12345678901234567890"},
		{"a fraction", Number, "-1.5e3", "-1.5e3"},
		{"no number", Number, "1 apple", ""},
		{"true is no number", Number, "true", ""},
		{"empty is no number", Number, "", ""},
		{"a boolean", Bool, "false", "false"},
		{"yes is no boolean", Bool, "yes", ""},
		{"JSON list", Collection, `["a"]`, `["a"]`},
		{"Terraform's list", Collection, `["a", 1, true,]`, `["a",1,true]`},
		{"Terraform's object", Collection, "{ a = 1\n b = { c = null } }", `{"a":1,"b":{"c":null}}`},
		{"null", Collection, "null", "null"},
		{"Go's list is none", Collection, "[a b]", ""},
		{"an empty text is no list", Collection, "", ""},
		{"a function is not called", Collection, `file("/etc/passwd")`, ""},
		{"a reference is not followed", Collection, `[var.x]`, ""},
		{"any: JSON", Any, `{"a":1}`, `{"a":1}`},
		{"any: a number", Any, "5", "5"},
		{"any: else text", Any, "plain text", `"plain text"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			v, err := Variable{Name: "v", Kind: tc.kind, Type: string(tc.kind)}.Parse(tc.text)
			if tc.want == "" {
				if err == nil {
					t.Errorf("%q gives %v, want an error", tc.text, v)
				} else if tc.text != "" && strings.Contains(err.Error(), tc.text) {
					t.Errorf("the error repeats the text: %v", err)
				}
				return
			}
			got, marshalErr := json.Marshal(v)
			if err != nil || marshalErr != nil || string(got) != tc.want {
				t.Errorf("%q gives %s, %v, want %s", tc.text, got, err, tc.want)
			}
		})
	}
}
