package leaves_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/runner/agent/leaves"
)

func TestReading(t *testing.T) {
	t.Parallel()
	sealed := map[string]any{"$sealed": "age"}
	tree := map[string]any{
		"name":   "acme",
		"inputs": map[string]any{"inputs": map[string]any{"token": sealed, "size": "1"}},
		"components": map[string]any{"db": map[string]any{
			"var_name": "base", "outputs": map[string]any{"dsn": map[string]any{"password": sealed, "host": "h"}},
		}},
	}
	got := leaves.Reading(tree, map[string]string{
		"literal":        "s3cret",
		"plain":          "{{ .nuon.inputs.inputs.size }} {{ .nuon.name }}",
		"as it is":       "{{ .nuon.inputs.inputs.token }}",
		"changed":        "{{ .nuon.inputs.inputs.token | b64enc }}",
		"by index":       `{{ index .nuon "inputs" "inputs" "token" }}`,
		"by its alias":   "{{ .nuon.components.base.outputs.dsn.password }}",
		"next to it":     "{{ .nuon.components.db.outputs.dsn.host }}",
		"all of it":      "{{ toJson .nuon.components.db.outputs }}",
		"computed":       "{{ index .nuon.inputs.inputs .nuon.name }}",
		"no template":    "{{ .nuon.inputs.inputs.token",
		"another branch": "{{ if eq .nuon.name \"x\" }}{{ .nuon.inputs.inputs.token }}{{ end }}",
	})
	want := []string{"all of it", "another branch", "as it is", "by index", "by its alias", "changed", "computed"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := leaves.Reading(nil, map[string]string{"a": "{{ .nuon.name }}"}); got != nil {
		t.Errorf("of no state: %q", got)
	}
}
