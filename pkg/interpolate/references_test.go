package interpolate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berth-dev/berth/pkg/interpolate"
)

func sortStrings(less func(a, b string) bool) cmp.Option { return cmpopts.SortSlices(less) }

func TestReferences(t *testing.T) {
	t.Parallel()
	const api = ".nuon.components.api.outputs.url"
	tests := []struct {
		name, src string
		want      []string
	}{
		{"none", "text", nil},
		{"path", "{{ .nuon.components.api.outputs.url }}", []string{api}},
		{"berth", "{{ .berth.components.api.outputs.url }}", []string{api}},
		{"root variable", "{{ $.nuon.components.api.outputs.url }}", []string{api}},
		{"index", `{{ index .nuon.components "api" "outputs" "url" }}`, []string{api}},
		{"index then field", `{{ (index .nuon.components "api").outputs.url }}`, []string{api}},
		{"index of a variable key", `{{ $n := "api" }}{{ (index .nuon.components $n).outputs.url }}`, []string{api}},
		{"index by pipeline", `{{ "api" | index .nuon.components }}`, []string{".nuon.components.api"}},
		{"chosen key", `{{ $n := ternary "a" "b" .nuon.org.id }}{{ (index .nuon.components $n).outputs.url }}`,
			[]string{".nuon.org.id", ".nuon.components.a.outputs.url", ".nuon.components.b.outputs.url"}},
		{"computed key", `{{ (index .nuon.components .nuon.inputs.inputs.which).outputs.url }}`,
			[]string{".nuon.inputs.inputs.which", ".nuon.components.*.outputs.url"}},
		{"with", `{{ with .nuon.components.api }}{{ .outputs.url }}{{ end }}`, []string{".nuon.components.api", api}},
		{"with and variable", `{{ with $c := .nuon.components.api }}{{ $c.outputs.url }}{{ end }}`, []string{".nuon.components.api", api}},
		{"variable", `{{ $o := .nuon.components.api.outputs }}{{ $o.url }}`, []string{api}},
		{"variable set in a branch", `{{ $o := .nuon.components.a }}{{ if .nuon.id }}{{ $o = .nuon.components.b }}{{ end }}{{ $o.status }}`,
			[]string{".nuon.id", ".nuon.components.a.status", ".nuon.components.b.status"}},
		{"variable set in a loop for the next turn",
			`{{ $o := .nuon.id }}{{ range .nuon.inputs.inputs.l }}{{ print $o }}{{ $o = .nuon.components.b.status }}{{ $o = $.nuon.components.b.status }}{{ end }}`,
			[]string{".nuon.inputs.inputs.l", ".nuon.id", ".nuon.components.b.status", ".nuon.inputs.inputs.l.*.nuon.components.b.status"}},
		{"range over components", `{{ range $n, $c := .nuon.components }}{{ $c.outputs.url }}{{ end }}`,
			[]string{".nuon.components", ".nuon.components.*.outputs.url"}},
		{"pipeline", `{{ .nuon.components.api.outputs.url | default "x" | quote }}`, []string{api}},
		{"default passes on", `{{ (default .nuon.components.a .nuon.components.b).status }}`,
			[]string{".nuon.components.a", ".nuon.components.b", ".nuon.components.a.status", ".nuon.components.b.status"}},
		{"dig", `{{ dig "api" "outputs" "url" "none" .nuon.components }}`, []string{api}},
		{"get", `{{ get .nuon.components "api" }}`, []string{".nuon.components.api"}},
		{"function reads its arguments", `{{ toJson .nuon.components.api.outputs }}`, []string{".nuon.components.api.outputs"}},
		{"named template", `{{ define "u" }}{{ .outputs.url }}{{ end }}{{ template "u" .nuon.components.api }}`,
			[]string{".nuon.components.api", api}},
		{"both branches", `{{ if .nuon.id }}{{ .nuon.components.a.status }}{{ else }}{{ .nuon.components.b.status }}{{ end }}`,
			[]string{".nuon.id", ".nuon.components.a.status", ".nuon.components.b.status"}},
		{"legacy inputs", "{{ .nuon.install.inputs.x }}", []string{".nuon.inputs.inputs.x"}},
		{"legacy sandbox", "{{ .nuon.install.sandbox.outputs.x }}", []string{".nuon.sandbox.outputs.x"}},
		{"legacy domain", "{{ .nuon.install.public_domain }}", []string{".nuon.domain.public_domain"}},
		{"action inputs", "{{ .action.inputs.x }}", []string{".action.inputs.x"}},
		{"another root", "{{ .Values.x }}{{ .nuon.id }}", []string{".Values.x", ".nuon.id"}},
		{"everything", "{{ toJson . }}{{/* .nuon */}}", []string{".nuon"}},
		{"comments do not count", "{{/* .nuon.components.api */}}x", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			refs, err := interpolate.References(tt.src)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range refs {
				got = append(got, r.String())
			}
			if diff := cmp.Diff(tt.want, got, sortStrings(func(a, b string) bool { return a < b })); diff != "" {
				t.Errorf("references of %q (-want +got):\n%s", tt.src, diff)
			}
		})
	}
}

func TestReferencePlaces(t *testing.T) {
	t.Parallel()
	refs, err := interpolate.References("a\n  {{ .nuon.id }}\n{{ print \"x\" .nuon.name }}")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range refs {
		got = append(got, fmt.Sprintf("%s %d:%d", r, r.Line, r.Column))
	}
	want := []string{".nuon.id 2:6", ".nuon.name 3:4"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
}

func TestReferencesOfHugeTemplates(t *testing.T) {
	t.Parallel()
	loops := "{{ $x := .nuon }}" + strings.Repeat("{{ range .nuon.id }}{{ $x = .a }}", 90) + strings.Repeat("{{ end }}", 90)
	if _, err := interpolate.References(loops); err == nil || !strings.Contains(err.Error(), "too complicated") {
		t.Errorf("nested loops: got %v", err)
	}
	longer := "{{ $x := .nuon }}" + strings.Repeat("{{ $x = $x.a }}", 10_000) + "{{ $x }}"
	if _, err := interpolate.References(longer); err != nil {
		t.Errorf("a growing path: %v", err)
	}
}
