package module_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/runner/engine/module"
)

func TestParseVars(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	tests := []struct {
		name, text string
		want       map[string]any
		err        string
	}{
		{name: "nothing", text: " \n", want: map[string]any{}},
		{
			name: "Terraform's notation keeps types", text: "a = \"x\"\nb = 10000000000000000001\nc = true\nd = [1, \"two\"]\ne = { k = null }\nf = <<EOT\nline\nEOT\n",
			want: map[string]any{
				"a": "x", "b": json.Number("10000000000000000001"), "c": true, "d": []any{json.Number("1"), "two"}, "e": map[string]any{"k": nil}, "f": "line\n",
			},
		},
		{name: "JSON keeps dollars", text: " {\"a\": \"${b}\", \"n\": 1.50}", want: map[string]any{"a": "${b}", "n": json.Number("1.50")}},
		{name: "no JSON", text: "{\"a\": " + secret, err: "it begins as a JSON object and is none"},
		{name: "a list", text: "[\"" + secret + "\"]", err: "line 1 is not in Terraform's notation"},
		{name: "a block", text: "a = 1\nb {\n  c = \"" + secret + "\"\n}", err: "line 2 is not in Terraform's notation"},
		{name: "a name that is a variable", text: "a = 1\nb = var." + secret, err: "line 2 is not in Terraform's notation: variables not allowed"},
		{name: "a function", text: "a = file(\"" + secret + "\")", err: "line 1 is not in Terraform's notation: function calls not allowed"},
		{name: "one name twice", text: "a = 1\na = \"" + secret + "\"", err: "line 2 is not in Terraform's notation"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := module.ParseVars(tt.text)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
			switch {
			case tt.err == "" && err != nil:
				t.Error(err)
			case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), secret)):
				t.Errorf("error %v, want %q and not the value", err, tt.err)
			}
		})
	}
}
