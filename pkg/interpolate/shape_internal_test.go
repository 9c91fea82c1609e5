package interpolate

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestShapeIsThatOfTheTree compares the shape with a tree that has everything, so
// that neither has a part that the other lacks.
func TestShapeIsThatOfTheTree(t *testing.T) {
	t.Parallel()
	full := NewTree(Parts{
		Components: map[string]Component{"c": {}}, Actions: map[string]Action{"a": {UpdatedAt: time.Unix(1, 0)}}, Secrets: map[string]Secret{"s": {Value: "v"}},
		CloudAccount: map[string]any{"aws": map[string]any{"region": "x"}, "azure": map[string]any{"location": "x"}, "gcp": map[string]any{}},
	})
	state := NewState(full)
	compareShape(t, "", treeShape, state[RootTree].(map[string]any))
}

func compareShape(t *testing.T, path string, s shape, tree map[string]any) {
	t.Helper()
	if s.each != nil {
		for name, one := range tree {
			compareShape(t, path+"."+name, *s.each, one.(map[string]any))
		}
		return
	}
	want := slices.DeleteFunc(slices.Sorted(maps.Keys(s.parts)), func(name string) bool {
		return name == "image" && strings.HasPrefix(path, ".components.") // the older place of an image, which no tree has
	})
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(tree))); diff != "" {
		t.Errorf("below .nuon%s (-shape +tree):\n%s", path, diff)
	}
	for name, below := range s.parts {
		if inner, ok := tree[name].(map[string]any); ok && !below.open {
			compareShape(t, path+"."+name, below, inner)
		}
	}
}

func TestMisfit(t *testing.T) {
	t.Parallel()
	tests := []struct {
		path string
		want string // the part that does not exist, "" when the path may be right
	}{
		{".nuon.id", ""},
		{".nuon.id.x", "x"},
		{".nuon.install.secrets.x", "secrets"},
		{".nuon.install.sandbox.outputs.vpc.id", ""},
		{".nuon.install.sandbox.output.x", "output"},
		{".nuon.install.sandbox.status", "status"},
		{".nuon.install.inputs.x", ""},
		{".nuon.install.public_domain", ""},
		{".nuon.components.c.output", "output"},
		{".nuon.components.c.outputs.anything.at.all", ""},
		{".nuon.components.c.image.tag", ""},
		{".nuon.components", ""},
		{".nuon.cloud_account.aws.regoin", "regoin"},
		{".nuon.cloud_account.aws.region", ""},
		{".nuon.cloud_account.gcp.project_id", ""},
		{".nuon.cloud_account.aswe.region", "aswe"},
		{".nuon.sandbox.output.x", "output"},
		{".nuon.sandbox.outputs.x", ""},
		{".nuon.actions.smoke.outputs.x", "smoke"},
		{".nuon.actions.workflows.smoke.outputs.steps.one.x", ""},
		{".nuon.actions.workflows.smoke.output", "output"},
		{".nuon.secrets.token.value", ""},
		{".nuon.secrets.token.password", "password"},
		{".nuon.install_stack.outputs.x.y", ""},
		{".nuon.install_stack.output.x", "output"},
		{".nuon.org.slug", "slug"},
		{".nuon.app.variables.x", ""},
		{".nuon.runner.id", ""},
		{"(index .nuon.components .nuon.id).output", "output"},
	}
	for _, tt := range tests {
		refs, err := ReferencesAlways("{{ " + tt.path + " }}")
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, ref := range refs {
			if m, ok := ref.Misfit(); ok {
				got = m.Name
			}
		}
		if got != tt.want {
			t.Errorf("%s: %q does not exist, want %q", tt.path, got, tt.want)
		}
	}
}
