package interpolate_test

import (
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/interpolate"
)

var seeds = []string{
	"", "text", "{{", "{{ .nuon.id }}", `{{ index .nuon.components "api" "outputs" "url" }}`,
	`{{ with $c := .nuon.components.api }}{{ range $i, $z := $c.outputs.zones }}{{ $i }}={{ $z }}{{ end }}{{ end }}`,
	`{{ define "a" }}{{ .id }}{{ end }}{{ template "a" .nuon }}`, `{{ $d := dict "a" 1 }}{{ $_ := set $d "b" .nuon }}{{ $d | toJson }}`,
	`{{ range until 10 }}{{ if eq . 3 }}{{ break }}{{ end }}{{ $.nuon.id }}{{ end }}`, `{{ dig "a" "b" .nuon }}`,
	`{{ printf "%5.2f|%-8s" 1.5 .nuon.id }}`, `{{ .nuon.id | b64enc | repeat 3 | trunc 10 | nindent 4 }}`,
	`{{ (first .nuon.components.api.outputs.zones) }}`, `{{ merge (dict) .nuon.inputs.inputs }}`, `{{ slice .nuon.components.api.outputs.zones 0 1 }}`,
}

// FuzzRender holds that rendering ends, stays in its limits, says the same
// thing twice, and never changes the state.
func FuzzRender(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		opts := interpolate.Options{Now: time.Unix(1e9, 0), MaxOutput: 64 << 10, Timeout: 200 * time.Millisecond}
		state := exampleState(t)
		first, err := interpolate.Render(src, state, opts)
		if err != nil {
			return
		}
		if interpolate.IsTemplate(src) && len(first) > opts.MaxOutput {
			t.Fatalf("%d bytes came out", len(first))
		}
		second, err := interpolate.Render(src, state, opts)
		if err == nil && first != second {
			t.Fatalf("rendered %q, then %q", first, second)
		}
	})
}

// FuzzReferences holds that tracing ends and that a template which renders can
// be traced.
func FuzzReferences(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		refs, err := interpolate.References(src)
		if err == nil {
			for _, r := range refs {
				if r.Line < 1 || r.Column < 1 {
					t.Fatalf("reference %v has no place", r)
				}
			}
			return
		}
		if _, renderErr := interpolate.Render(src, exampleState(t), interpolate.Options{Now: time.Unix(1e9, 0)}); renderErr == nil {
			t.Fatalf("renders, but: %v", err)
		}
	})
}
