package tfvars_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/tfvars"
)

func TestBroken(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, source, want string }{
		{"nothing", "", ""},
		{"a module", "variable \"x\" {\n  default = [1, { a = (2) }]\n}\n", ""},
		{"brackets in strings, comments and heredocs", "a = \"{\" # [\n/* ( */ b = <<-EOT\n  {[(\n  EOT\n", ""},
		{"an interpolation with a string in it", "a = \"${join(\",\", [\n  \"}\",\n])}\"\n", ""},
		{"a brace that is open", "a = {\n  b = 1\n", `1 has a "{" that is not closed`},
		{"a bracket that closes another", "a = [\n  1 }\n", `2 has a "}" that closes nothing`},
		{"a bracket too many", "a = 1\n)\n", `2 has a ")" that closes nothing`},
		{"a string over lines", "a = 1\nb = \"never\nc = \"1\"\n", "2 has a string that does not end in its line"},
		{"a heredoc without an end", "a = <<EOT\nx\n", "1 has a string, a heredoc or a comment that does not end"},
		{"a comment without an end", "/* x\n", "2 has a string, a heredoc or a comment that does not end"},
	}
	for _, tt := range tests {
		if got := said(tfvars.Broken(tt.source)); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestBrokenValues(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, source, want string }{
		{"values", "# all\na = 1\n\nb = [\n  \"x\", # y\n]\nc = { d = 1 }\n", ""},
		{"JSON", "{\"a\": [1]}", ""},
		{"YAML", "a: 1\n", "1 is not of the form name = value"},
		{"a block", "a = 1\nvariable \"x\" {}\n", "2 is not of the form name = value"},
		{"a name alone", "a = 1\nb\n", "2 is not of the form name = value"},
		{"a name without value", "a =\nb = 1\n", "1 is not of the form name = value"},
		{"half a JSON object", "{\"a\": ", "1 is no JSON object"},
	}
	for _, tt := range tests {
		if got := said(tfvars.BrokenValues(tt.source)); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestBrokenIsBounded holds that hostile files take time that grows with their size.
func TestBrokenIsBounded(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{"[", "\"${", "a?", "<<E\n", "{\n", "/*", "((\"", "x = [\n"} {
		start := time.Now()
		source := strings.Repeat(piece, (1<<20)/len(piece))
		tfvars.Broken(source)
		tfvars.BrokenValues(source)
		tfvars.Outputs(source)
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("1 MiB of %q took %s", piece, took)
		}
	}
}

func said(p *tfvars.Problem) string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("%d %s", p.Line, p.Message)
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	got, whole := tfvars.Outputs("output \"a\" {\n  value = { output = 1 }\n}\nlocals {\n  output = {}\n}\noutput b {\n}\n")
	if fmt.Sprint(got) != "[a b]" || !whole {
		t.Errorf("got %v, %v", got, whole)
	}
	m := tfvars.Module{}
	m.Add("main.tf.json", []byte(`{"output": {"c": {"value": 1}}}`))
	if fmt.Sprint(m.Outputs) != "[c]" || m.Unsure {
		t.Errorf("JSON: got %v, %v", m.Outputs, m.Unsure)
	}
}
