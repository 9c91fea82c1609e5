package interpolate_test

import (
	"fmt"
	"slices"
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
		{"variable set again in its block", `{{ $o := .nuon.components.a }}{{ $o = .nuon.components.b }}{{ $o.status }}`,
			[]string{".nuon.components.a", ".nuon.components.b.status"}},
		{"variables handed on in a loop", `{{ $a := 1 }}{{ $b := 1 }}{{ $c := 1 }}{{ range .nuon.inputs.inputs.l }}{{ $a }}{{ $a = $b }}{{ $b = $c }}{{ $c = $.nuon.org.id }}{{ end }}`,
			[]string{".nuon.inputs.inputs.l", ".nuon.org.id"}},
		{"a variable that nobody reads", `{{ $o := .nuon.components.a.outputs.x }}`, []string{".nuon.components.a.outputs.x"}},
		{"constant or computed key", `{{ $n := default (lower "API") .nuon.inputs.inputs.n }}{{ index .nuon.components $n }}`,
			[]string{".nuon.inputs.inputs.n", ".nuon.components.*"}},
		{"range over constant names", `{{ range list "a" "b" }}{{ (index $.nuon.components .).status }}{{ end }}`,
			[]string{".nuon.components.a.status", ".nuon.components.b.status"}},
		{"parenthesised chains", `{{ ((index (.nuon).components "a").outputs).url }}`, []string{".nuon.components.a.outputs.url"}},
		{"chain through a variable", `{{ with $.nuon }}{{ ($.nuon.components.a).status }}{{ end }}`, []string{".nuon", ".nuon.components.a.status"}},
		{"block", `{{ block "u" .nuon.components.a }}{{ .status }}{{ end }}`, []string{".nuon.components.a", ".nuon.components.a.status"}},
		{"nested templates", `{{ define "in" }}{{ .url }}{{ end }}{{ define "out" }}{{ template "in" .outputs }}{{ end }}{{ template "out" .nuon.components.a }}`,
			[]string{".nuon.components.a", ".nuon.components.a.outputs", ".nuon.components.a.outputs.url"}},
		{"a template called twice", `{{ define "u" }}{{ .status }}{{ end }}{{ template "u" .nuon.components.a }}{{ template "u" .nuon.components.b }}`,
			[]string{".nuon.components.a", ".nuon.components.a.status", ".nuon.components.b", ".nuon.components.b.status"}},
		{"recursion covers all below", `{{ define "w" }}{{ .name }}{{ range .children }}{{ template "w" . }}{{ end }}{{ end }}{{ template "w" .nuon.sandbox.outputs.tree }}`,
			[]string{".nuon.sandbox.outputs.tree", ".nuon.sandbox.outputs.tree.name", ".nuon.sandbox.outputs.tree.children",
				".nuon.sandbox.outputs.tree.children.*"}},
		{"pluck", `{{ pluck "status" .nuon.components.a .nuon.components.b }}`, []string{".nuon.components.a.status", ".nuon.components.b.status"}},
		{"hasKey", `{{ hasKey .nuon.components "a" }}`, []string{".nuon.components.a"}},
		{"else with", `{{ with .nuon.components.a }}x{{ else with .nuon.components.b }}{{ .status }}{{ end }}`,
			[]string{".nuon.components.a", ".nuon.components.b", ".nuon.components.b.status"}},
		{"legacy as a whole", `{{ toJson .nuon.install }}`, []string{".nuon.id", ".nuon.name", ".nuon.domain", ".nuon.inputs.inputs", ".nuon.sandbox.outputs"}},
		{"legacy by with", `{{ with .nuon.install }}{{ .id }}{{ end }}`, []string{".nuon.install", ".nuon.id"}},
		{"Kyverno's are none", `{{ request.object.x }}{{ .nuon.id }}{{ element.nuon }}`, []string{".nuon.id"}},
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

func TestReferenceKinds(t *testing.T) {
	t.Parallel()
	type kind struct {
		Kind            interpolate.Kind
		Name            string
		Dynamic, Legacy bool
	}
	tests := []struct {
		src  string
		want kind
	}{
		{".nuon.id", kind{Kind: interpolate.KindInstall}},
		{".nuon.org.name", kind{Kind: interpolate.KindOrg}},
		{".nuon.app.name", kind{Kind: interpolate.KindApp}},
		{".nuon.app.variables.tier", kind{Kind: interpolate.KindApp, Name: "tier"}},
		{".nuon.inputs.inputs.domain", kind{Kind: interpolate.KindInput, Name: "domain"}},
		{".nuon.inputs.inputs", kind{Kind: interpolate.KindInput, Dynamic: true}},
		{".nuon.inputs.populated", kind{Kind: interpolate.KindInput}},
		{"index .nuon.inputs.inputs (lower .nuon.id)", kind{Kind: interpolate.KindInput, Dynamic: true}},
		{".nuon.install_stack.status", kind{Kind: interpolate.KindStack}},
		{".nuon.install_stack.outputs.vpc_id", kind{Kind: interpolate.KindStack, Name: "vpc_id"}},
		{".nuon.install_stack.outputs.custom_nested_stacks.db.host", kind{Kind: interpolate.KindStack, Name: "custom_nested_stacks"}},
		{".nuon.sandbox.outputs.cluster.name", kind{Kind: interpolate.KindSandbox, Name: "cluster"}},
		{".nuon.sandbox.outputs", kind{Kind: interpolate.KindSandbox, Dynamic: true}},
		{".nuon.components.api.outputs.url", kind{Kind: interpolate.KindComponent, Name: "api"}},
		{".nuon.components.api", kind{Kind: interpolate.KindComponent, Name: "api"}},
		{".nuon.components", kind{Kind: interpolate.KindComponent, Dynamic: true}},
		{"(index .nuon.components (lower .nuon.id)).outputs.url", kind{Kind: interpolate.KindComponent, Dynamic: true}},
		{".nuon.components.img.outputs.image.tag", kind{Kind: interpolate.KindImage, Name: "img"}},
		{".nuon.components.img.image.repository.uri", kind{Kind: interpolate.KindImage, Name: "img"}},
		{".nuon.actions.workflows.smoke.outputs.steps.one.ok", kind{Kind: interpolate.KindAction, Name: "smoke"}},
		{".nuon.actions.populated", kind{Kind: interpolate.KindAction}},
		{".nuon.actions", kind{Kind: interpolate.KindAction, Dynamic: true}},
		{".nuon.secrets.token.arn", kind{Kind: interpolate.KindSecret, Name: "token"}},
		{".nuon.secrets", kind{Kind: interpolate.KindSecret, Dynamic: true}},
		{".nuon.runner.id", kind{Kind: interpolate.KindRunner}},
		{".nuon.domain.public_domain", kind{Kind: interpolate.KindDomain, Name: "public_domain"}},
		{".nuon.cloud_account.aws.region", kind{Kind: interpolate.KindCloudAccount, Name: "aws"}},
		{".nuon.install.inputs.domain", kind{Kind: interpolate.KindInput, Name: "domain", Legacy: true}},
		{".nuon.install.sandbox.outputs.cluster", kind{Kind: interpolate.KindSandbox, Name: "cluster", Legacy: true}},
		{".nuon.install.public_domain", kind{Kind: interpolate.KindDomain, Name: "public_domain", Legacy: true}},
		{".action.inputs.version", kind{Kind: interpolate.KindActionInput, Name: "version"}},
		{"$.nuon", kind{Kind: interpolate.KindTree, Dynamic: true}},
		{".nuon.component.api", kind{Kind: interpolate.KindUnknown}},
		{".Values.x", kind{Kind: interpolate.KindUnknown}},
	}
	for _, tt := range tests {
		t.Run(tt.src, func(t *testing.T) {
			t.Parallel()
			refs, err := interpolate.ReferencesAlways("{{ " + tt.src + " }}")
			if err != nil || len(refs) == 0 {
				t.Fatalf("references: %v, %v", refs, err)
			}
			last := refs[len(refs)-1]
			if diff := cmp.Diff(tt.want, kind{last.Kind, last.Name, last.Dynamic, last.Legacy}); diff != "" {
				t.Errorf("kind of %s (-want +got):\n%s", last, diff)
			}
		})
	}
}

func TestLiterals(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, src string
		want      []interpolate.Literal
	}{
		{"none", "{{ .nuon.id }}", nil},
		{"next to ours", "{{ .nuon.id }}\n  {{ request.object.x }}", []interpolate.Literal{{Text: "{{ request.object.x }}", Line: 2, Column: 3}}},
		{"no template", "{{ request.object.x }}", nil},
		{"dotless", "{{nuon.install.id}}", []interpolate.Literal{{Text: "{{nuon.install.id}}", Line: 1, Column: 1, Dotless: true}}},
		{"dotless next to ours", "{{ .nuon.id }}{{ berth.id }}", []interpolate.Literal{{Text: "{{ berth.id }}", Line: 1, Column: 15, Dotless: true}}},
		{"dotless argument", `{{ default "x" nuon.name }}`, []interpolate.Literal{{Text: `{{ default "x" nuon.name }}`, Line: 1, Column: 1, Dotless: true}}},
		{"a host name is no root", "{{ x }} https://nuon.co {{ `docs.nuon.co` }}", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, interpolate.Literals(tt.src)); diff != "" {
				t.Errorf("literals of %q (-want +got):\n%s", tt.src, diff)
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

// TestReferencesOfHugeTemplates holds that tracing ends: with an answer, or by
// saying that there is none. What it finds still covers what is read.
func TestReferencesOfHugeTemplates(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, src, want, fails string }{
		{name: "nested loops", want: ".nuon.id",
			src: "{{ $x := .nuon }}" + strings.Repeat("{{ range .nuon.id }}{{ $x = .a }}", 90) + strings.Repeat("{{ end }}", 90)},
		{name: "a growing path", want: ".nuon" + strings.Repeat(".a", 15),
			src: "{{ $x := .nuon }}" + strings.Repeat("{{ $x = $x.a }}", 10_000) + "{{ $x }}"},
		{name: "a walk into two branches", want: ".nuon.components.a",
			src: `{{ define "w" }}{{ with .a }}{{ template "w" . }}{{ end }}{{ with .b }}{{ template "w" . }}{{ end }}{{ end }}{{ template "w" .nuon.components }}`},
		{name: "loops inside loops that hand variables on", fails: "too complicated",
			src: chainedLoops(40)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			refs, err := interpolate.References(tt.src)
			if tt.fails != "" && (err == nil || !strings.Contains(err.Error(), tt.fails)) {
				t.Fatalf("got %d references and %v, want %q", len(refs), err, tt.fails)
			}
			if tt.fails == "" && err != nil {
				t.Fatal(err)
			}
			if tt.want != "" && !slices.ContainsFunc(refs, func(r interpolate.Reference) bool { return r.String() == tt.want }) {
				t.Errorf("got %v, want %s among them", refs, tt.want)
			}
		})
	}
}

// chainedLoops makes n loops inside each other in which each variable is given
// to the next, so that what is read takes many rounds to find out.
func chainedLoops(n int) string {
	var b strings.Builder
	for i := range n + 1 {
		fmt.Fprintf(&b, "{{ $v%d := .nuon.id }}", i)
	}
	for i := range n {
		fmt.Fprintf(&b, "{{ range .nuon.l }}{{ $v%d = $v%d.a }}{{ $v%d = .b }}", i, i+1, n)
	}
	return b.String() + strings.Repeat("{{ end }}", n)
}
