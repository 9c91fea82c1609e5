package module

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/tfvars"
)

// FuzzSameVariables holds that the small reader, which checks app folders, and
// the real parser, which deploys them, find the same variables in every file
// that is right.
func FuzzSameVariables(f *testing.F) {
	for _, seed := range []string{
		"variable \"a\" {}\nvariable b {\n  default = null\n}\n",
		"/* x */ variable \"a\" { type = string }\nlocals {\n  x = { variable = [\"}\"] }\n}\n",
		"variable \"a\" {\n  description = <<-EOT\n    variable \"x\" {}\n  EOT\n  default = \"${x(\"}\")} $${\"\n}\n",
		"variable \"a\" {\n  validation {\n    default = 1\n  }\n}\n# variable \"c\" {}\n// x\n",
		"variable \"a-b\" {\n  default = [\n    1, # }\n    2\n  ]\n}\nmodule \"m\" {\n  source = \"./m\"\n}\n",
		"locals { x = 1 << 2 }", "variable \"a\" {\n  default = true ? \"${\"x${\"y\"}\"}\" : \"\\\"\"\n}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		if strings.ContainsAny(source, "\x00") || len(source) > 1<<12 {
			return
		}
		m, err := read(t, map[string]string{"main.tf": source})
		if err != nil {
			return
		}
		var small tfvars.Module
		small.Add("main.tf", []byte(source))
		got, want := map[string]bool{}, map[string]bool{}
		for _, v := range small.Variables {
			got[v.Name] = !v.Optional
		}
		for name, v := range m.Variables {
			want[name] = v.Required
		}
		if diff := cmp.Diff(want, got); diff != "" && !small.Unsure {
			t.Errorf("variables and whether they are required (-parser +small):\n%s", diff)
		}
		for name := range maps.Keys(got) {
			if _, ok := want[name]; !ok && small.Unsure {
				t.Errorf("%q is found and is not there", name)
			}
		}
	})
}
