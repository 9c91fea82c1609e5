package interpolate_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/interpolate"
)

var seeds = []string{
	"", "text", "{{", "{{ .nuon.id }}", `{{ index .nuon.components "api" "outputs" "url" }}`,
	`{{ with $c := .nuon.components.api }}{{ range $i, $z := $c.outputs.zones }}{{ $i }}={{ $z }}{{ end }}{{ end }}`,
	`{{ define "a" }}{{ .id }}{{ end }}{{ template "a" .nuon }}`, `{{ $d := dict "a" 1 }}{{ $_ := set $d "b" .nuon }}{{ $d | toJson }}`,
	`{{ range until 10 }}{{ if eq . 3 }}{{ break }}{{ end }}{{ $.nuon.id }}{{ end }}`, `{{ dig "a" "b" .nuon }}`,
	`{{ printf "%5.2f|%-8s" 1.5 .nuon.id }}`, `{{ .nuon.id | b64enc | repeat 3 | trunc 10 | nindent 4 }}`,
	`{{ (first .nuon.components.api.outputs.zones) }}`, `{{ merge (dict) .nuon.inputs.inputs }}`, `{{ slice .nuon.components.api.outputs.zones 0 1 }}`,
	`{{ range $n, $c := .nuon.components }}{{ $n }}{{ $c.status }}{{ end }}`, `{{ (index .nuon.components (lower "API")).outputs.port }}`,
	`{{ $a := .nuon.id }}{{ $b := 1 }}{{ range list 1 2 3 }}{{ $a }}{{ $a = $b }}{{ $b = $.nuon.org.name }}{{ end }}`,
	`{{ range list "api" "my-db" }}{{ (index $.nuon.components .).populated }}{{ end }}`, `{{ keys .nuon.install | join "," }}`,
	`{{ $n := ternary "api" "my-db" (eq .nuon.name "ada") }}{{ toJson (get .nuon.components $n) }}`, `{{ len .nuon.components }}{{ .nuon.install.inputs.domain }}`,
	`{{ define "w" }}{{ range . }}{{ if kindIs "map" . }}{{ template "w" . }}{{ else }}{{ . }}{{ end }}{{ end }}{{ end }}{{ template "w" .nuon.sandbox.outputs }}`,
	`{{ request.object.name }} {{ .nuon.id }} {{ to_upper('{{ element.x }}') }}`, "{{ `{{ x }}` }}{{ .nuon.name }}", `{{nuon.install.id}} {{- .nuon.id -}} x`,
	`{{ range .nuon.install }}{{ $.nuon.id }}{{ end }}`, `{{ . }}`,
	`{{ with .nuon.install }}{{ .name }}{{ with .sandbox }}{{ .outputs.cluster.name }}{{ end }}{{ end }}`, `{{ pluck "status" .nuon.org .nuon.app }}`,
	`{{ now.Year }}{{ (now).Format .nuon.id }}{{ semver "1.2.3" }}`, `{{ coalesce .nuon.inputs.inputs.empty .nuon.inputs.inputs.nothing "x" }}`,
	`{{ if hasKey .nuon.components "api" }}{{ "y" | print .nuon.org.id }}{{ else if .nuon.runner.id }}n{{ end }}`,
	`{{ regexReplaceAll "(a+)" .nuon.name "<$1>" }}{{ .action.inputs.x }}`, `{{ block "b" (list .nuon .nuon.org) }}{{ (index . 0).name }}{{ end }}`,
	`{{ $x := list .nuon.components }}{{ range $x }}{{ range . }}{{ .status }}{{ end }}{{ end }}`, `{{ with $x := dict "k" "api" }}{{ (index $.nuon.components $x.k).status }}{{ end }}`,
}

// quick bounds the rendering of the fuzz targets: in steps, so that a busy
// machine finds the same, and late in time.
func quick() interpolate.Options {
	return interpolate.Options{Now: time.Unix(1e9, 0), MaxOutput: 64 << 10, Timeout: 20 * time.Second}
}

// FuzzRender holds that rendering ends without a panic, stays in its limits,
// says the same thing twice, leaves other text alone and never changes the
// state.
func FuzzRender(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		state := exampleState(t)
		first, err := interpolate.Render(src, state, quick())
		if !interpolate.IsTemplate(src) && (err != nil || first != src) {
			t.Fatalf("no template, but %q became %q, %v", src, first, err)
		}
		if diff := cmp.Diff(exampleState(t), state); diff != "" {
			t.Fatalf("the state changed (-want +got):\n%s", diff)
		}
		if err != nil {
			if _, ok := errors.AsType[*interpolate.Error](err); !ok {
				t.Fatalf("got an error of type %T: %v", err, err)
			}
			return
		}
		if interpolate.IsTemplate(src) && len(first) > 64<<10 {
			t.Fatalf("%d bytes came out", len(first))
		}
		second, err := interpolate.Render(src, exampleState(t), quick())
		if err != nil || first != second {
			t.Fatalf("rendered %q, then %q, %v", first, second, err)
		}
	})
}

// FuzzReferences holds that everything that rendering reads is found: when all
// that no reference covers is taken out of the tree, the same comes out.
func FuzzReferences(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) { checkReferences(t, src) })
}

func TestReferencesCoverWhatIsRead(t *testing.T) {
	t.Parallel()
	for _, src := range seeds {
		checkReferences(t, src)
	}
}

// checkReferences tells whether the template renders at all.
func checkReferences(t *testing.T, src string) bool {
	t.Helper()
	want, renderErr := interpolate.RenderAlways(src, exampleState(t).WithActionInputs(map[string]string{"x": "1"}), quick())
	refs, err := interpolate.ReferencesAlways(src)
	if err != nil {
		if e, ok := errors.AsType[*interpolate.Error](err); renderErr == nil && (!ok || e.Message != tooComplicated) {
			t.Fatalf("%q renders, but: %v", src, err)
		}
		return false
	}
	for _, r := range refs {
		if r.Line < 1 || r.Column < 1 || r.Kind == "" || r.Name == interpolate.Any {
			t.Fatalf("%q: reference %+v has no place, no kind, or a name that is none", src, r)
		}
	}
	if renderErr != nil {
		return false
	}
	got, err := interpolate.RenderAlways(src, prunedState(t, refs), quick())
	if err != nil || got != want {
		t.Fatalf("%q reads more than %v: got %q, %v, want %q", src, refs, got, err, want)
	}
	return true
}

const tooComplicated = "the template is too complicated: what it reads cannot be found out"

// prunedState is exampleState with only what the references cover; next to it
// stand keys and elements that no template may see.
func prunedState(t *testing.T, refs []interpolate.Reference) interpolate.State {
	t.Helper()
	tree := exampleTree(t)
	components, _ := tree["components"].(map[string]any)
	var paths, action [][]string
	for _, r := range refs {
		path := slices.Clone(r.Path)
		switch {
		case r.Root == interpolate.RootAction:
			action = append(action, path)
			continue
		case r.Root != interpolate.RootTree:
			continue
		}
		if len(path) == 0 { // all there is, so what was given to an action too
			action = append(action, path)
		}
		if len(path) > 1 && path[0] == "components" {
			for name, c := range components {
				if c, _ := c.(map[string]any); c["var_name"] == path[1] {
					path[1] = name
				}
			}
		}
		if len(path) == 1 && path[0] == "install" { // being there is all that counts
			continue
		}
		paths = append(paths, path)
	}
	paths = append(paths, []string{"components", interpolate.Any, "var_name"})
	pruned, _ := prune(tree, paths).(map[string]any)
	state := interpolate.NewState(pruned)
	inputs, _ := prune(map[string]any{"inputs": map[string]any{"x": "1"}}, action).(map[string]any)["inputs"].(map[string]any)
	given := map[string]string{}
	for k, v := range inputs {
		given[k], _ = v.(string)
	}
	return state.WithActionInputs(given)
}

func prune(v any, paths [][]string) any {
	for _, p := range paths {
		if len(p) == 0 {
			return v
		}
	}
	below := func(key string) [][]string {
		var rest [][]string
		for _, p := range paths {
			if p[0] == key || p[0] == interpolate.Any {
				rest = append(rest, p[1:])
			}
		}
		return rest
	}
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{"unseen": "POISON"}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if rest := below(k); len(rest) > 0 {
				out[k] = prune(v[k], rest)
			}
		}
		return out
	case []any:
		out := make([]any, len(v), len(v)+1)
		for i, item := range v {
			out[i] = "POISON"
			if rest := below(strconv.Itoa(i)); len(rest) > 0 {
				out[i] = prune(item, rest)
			}
		}
		return append(out, "POISON")
	}
	return v // a path that goes on below a scalar fails either way
}

func exampleTree(t *testing.T) map[string]any {
	t.Helper()
	encoded, err := json.Marshal(interpolate.NewTree(exampleParts()))
	if err != nil {
		t.Fatal(err)
	}
	var decoded map[string]any
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}
