package template

import (
	"testing"

	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/tfvars"
)

// FuzzWithoutActions holds that taking the actions out of a file of values ends,
// and leaves what is no template alone.
func FuzzWithoutActions(f *testing.F) {
	for _, seed := range []string{"a = \"{{ index .nuon \"x\" }}\"\n", "{\"a\": {{ .nuon.id | toJson }}, \"{{ .nuon.id }}\": 1}", "{{ if .nuon.id }}\na = 1\n{{ end }}", "{{ `", "{{ .nuon.id \"", "{{/* x */}}{{ $x := .nuon.id }}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		plain, certain := WithoutActions(text)
		if !interpolate.IsTemplate(text) && (plain != text || !certain) {
			t.Fatalf("%q is no template and becomes %q", text, plain)
		}
		tfvars.Assigned(plain)
	})
}
