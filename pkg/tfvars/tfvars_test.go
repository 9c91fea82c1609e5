package tfvars_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/tfvars"
)

const source = `
terraform {
  required_version = ">= 1.6, < 2.0"
}
# variable "in_a_comment" {}
/* variable "in_another" {
} */
variable "region" { type = string }
variable bare {}
variable "zones" {
  type        = list(object({ name = string, variable = optional(string, "}") }))
  description = "Which \"zones\", one of ${join(",", ["a", "b"])}"
  validation {
    default       = "not of the variable"
    condition     = length(var.zones) > 0
    error_message = <<-EOT
      variable "in_text" {
    EOT
  }
}
variable "token" {
  sensitive = true // never shown
  type      = "string"
}
variable "with_null" {
  default = null
}
variable "with_text" {
  default = "a \" ${x("}")} {"
}
locals {
  x = { variable = "nested" }
}
variable "size" {
  description = <<EOT
long
 and wide
EOT
  type = number
}
`

func TestDeclared(t *testing.T) {
	t.Parallel()
	want := []tfvars.Variable{
		{Name: "region", Type: "string"},
		{Name: "bare"},
		{Name: "zones", Type: "list", Description: `Which "zones", one of ${join(",", ["a", "b"])}`},
		{Name: "token", Type: "string", Sensitive: true},
		{Name: "with_null", Optional: true},
		{Name: "with_text", Optional: true},
		{Name: "size", Type: "number", Description: "long and wide"},
	}
	for name, text := range map[string]string{"as it is": source, "of Windows": "\uFEFF" + strings.ReplaceAll(source, "\n", "\r\n")} {
		got, whole := tfvars.Declared(text)
		if diff := cmp.Diff(want, got); diff != "" || !whole {
			t.Errorf("%s: whole is %v, variables (-want +got):\n%s", name, whole, diff)
		}
	}
}

func TestDeclaredJSON(t *testing.T) {
	t.Parallel()
	const doc = `{
  "//": "a comment",
  "variable": {"a": {"type": "list(string)", "default": null}, "b": [{"description": "of\n b"}, {"sensitive": true}]},
  "locals": {"variable": {"c": {}}},
  "variable": [{"d": {}}, {"e": {"default": 1}}]
}`
	want := []tfvars.Variable{
		{Name: "a", Type: "list", Optional: true}, {Name: "b", Description: "of b", Sensitive: true}, {Name: "d"}, {Name: "e", Optional: true},
	}
	got, whole := tfvars.DeclaredJSON(doc)
	if diff := cmp.Diff(want, got); diff != "" || !whole {
		t.Errorf("whole is %v, variables (-want +got):\n%s", whole, diff)
	}
	for _, broken := range []string{"", "[]", `{"variable": 3}`, `{"variable": {"a": 3}}`, `{"variable": {"a": {}}`, `{} x`, `{"variable": {"a b": {}}}`} {
		if _, whole := tfvars.DeclaredJSON(broken); whole {
			t.Errorf("%s is read as if it were right", broken)
		}
	}
}

func TestAssigned(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, source string
		want         []tfvars.Assignment
		whole        bool
	}{
		{"nothing", "\n# x = 1\n", nil, true},
		{"values", "a = 1 # b = 2\nlist = [\n  \"x\",\n  { inner = 1 },\n]\ntext = <<EOT\nnot = 1\nEOT\nlast = \"${\"}\"}\"", []tfvars.Assignment{{"a", 1}, {"list", 2}, {"text", 6}, {"last", 9}}, true},
		{"JSON", "{\n  \"a\": 1,\n  \"b\": {\"c\": [2]}}", []tfvars.Assignment{{"a", 2}, {"b", 3}}, true},
		{"a block", "a = 1\nb {\n c = 1\n}\n", []tfvars.Assignment{{"a", 1}}, false},
		{"no value", "a\n", nil, false},
		{"no end of a list", "a = [\nb = 1\n", []tfvars.Assignment{{"a", 1}}, false},
		{"no end of a text", "a = \"x\nb = 1\n", []tfvars.Assignment{{"a", 1}}, false},
		{"too many ends", "a = 1 }\nb = 2\n", []tfvars.Assignment{{"a", 1}}, false},
		{"a name that is none", "\uE000 = 1\nb = 2\n", []tfvars.Assignment{{"b", 2}}, false},
		{"JSON that is none", "{\"a\": 1,,}", nil, false},
	} {
		got, whole := tfvars.Assigned(tc.source)
		if diff := cmp.Diff(tc.want, got); diff != "" || whole != tc.whole {
			t.Errorf("%s: whole is %v, want %v; (-want +got):\n%s", tc.name, whole, tc.whole, diff)
		}
	}
}

func TestModule(t *testing.T) {
	t.Parallel()
	var m tfvars.Module
	for _, file := range [][2]string{
		{"main.tf", "variable \"a\" {}\nvariable \"b\" {}\n"},
		{"more.tf.json", `{"variable": {"c": {}}}`},
		{"b_override.tf", "variable \"b\" {\n  default = 1\n}\n"},
		{"terraform.tfvars", "a = 1\n"},
		{"x.auto.tfvars.json", `{"c": 1}`},
		{"prod.tfvars", "read = \"by nobody\"\n"},
		{".hidden.tf", "variable \"hidden\" {}\n"},
		{"main.tf~", "variable \"old\" {}\n"},
	} {
		m.Add(file[0], []byte(file[1]))
	}
	var names []string
	for _, v := range m.Variables {
		names = append(names, v.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" || !m.Variables[1].Optional || m.Files != 3 || m.Unsure {
		t.Errorf("got %+v, names (-want +got):\n%s", m, diff)
	}
	if diff := cmp.Diff(map[string]bool{"a": true, "c": true}, m.Given); diff != "" {
		t.Errorf("given (-want +got):\n%s", diff)
	}
	m.Add("broken.tf", []byte("variable \"d\" {"))
	if !m.Unsure {
		t.Error("a broken file leaves no doubt")
	}
}

func TestLimit(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("variable \"a\" {}\n", tfvars.MaxVariables+1)
	if got, whole := tfvars.Declared(many); whole || len(got) != tfvars.MaxVariables {
		t.Errorf("%d variables are read, whole is %v", len(got), whole)
	}
	many = strings.Repeat("a = 1\n", tfvars.MaxVariables+1)
	if got, whole := tfvars.Assigned(many); whole || len(got) != tfvars.MaxVariables {
		t.Errorf("%d values are read, whole is %v", len(got), whole)
	}
}

// TestHostile holds that no input takes much memory.
// Several of them end a process that reads them with hcl: see the package
// comment.
func TestHostile(t *testing.T) { //nolint:paralleltest // it counts what is allocated
	const size, most = 256 << 10, 16 << 20 // MaxVariables take a few MiB
	for name, piece := range map[string]string{
		"lists": "[", "parentheses": "(", "braces": "{", "blocks": "a {\n", "closing": "}", "negations": "!", "conditions": "a?",
		"templates in strings": "\"${", "escapes": "\"\\", "sums": "1+", "attributes": "a.", "digits": "9", "heredocs": "<<E\n", "ended heredocs": "a = <<E\nx\nE\n",
		"comments": "/*", "labels": "variable \"a\" ", "text": "variable \"", "no line end": " ", "line ends": "\n", "marks": "\uFEFF", "bytes": "\xff",
		"values": "a = 1\n", "variables": "variable \"a\" {}\n", "open variables": "variable \"a\" {\n",
		"JSON lists": `{"variable":[`, "JSON objects": `{"variable":`, "JSON names": `"a":1,`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, start := range []string{"", "variable \"v\" {\n  default = ", "{"} {
				source := start + strings.Repeat(piece, size/len(piece))
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				began := time.Now()
				tfvars.Declared(source)
				tfvars.Assigned(source)
				tfvars.DeclaredJSON(source)
				took := time.Since(began)
				runtime.ReadMemStats(&after)
				if used := after.TotalAlloc - before.TotalAlloc; used > most || took > 30*time.Second {
					t.Errorf("after %q: %d MiB in %s", start, used>>20, took)
				}
			}
		})
	}
}

// FuzzVariables holds that the reader ends whatever it reads, and finds nothing
// that is not there.
func FuzzVariables(f *testing.F) {
	for _, seed := range []string{
		source, "variable \"a\" {}", "variable a {}", "x = \"${\"}\"}\"", "<<EOT\nvariable \"b\" {}\nEOT\nvariable \"c\" {\n}", "/* \" */ variable \"d\" {", "\"", "<<", "<<-",
		"${", "# x", "/*", "}}}variable \"e\" {", "<<EOT\n\"$${%{\\", "a = [1,\n 2]\nb = <<-X\n X\n", `{"variable": {"a": [{"default": 1}]}, "b": "\u0061"}`, "\uFEFFa = 1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		declared, _ := tfvars.Declared(source)
		if again, _ := tfvars.Declared(source); !slices.Equal(declared, again) {
			t.Fatal("read twice it is something else")
		}
		for _, v := range declared {
			if !strings.Contains(source, v.Name) {
				t.Fatalf("variable %q is not there", v.Name)
			}
		}
		_, _ = tfvars.DeclaredJSON(source)
		assigned, _ := tfvars.Assigned(source)
		for _, a := range assigned {
			if a.Line < 1 || a.Line > strings.Count(source, "\n")+1 {
				t.Fatalf("%q is given in line %d", a.Name, a.Line)
			}
		}
	})
}
