package job

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/jobdir"
)

// A control plane that was taken over has every sealed thing of the org, and
// builds the tree of a job from it. Whatever it puts in the place of something
// else, the runner does not open it, and says what it was sealed for.
func TestAttackSealedThingsPassedOffAsAnother(t *testing.T) {
	t.Parallel()
	dir, err := datadir.At(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Make(0); err != nil {
		t.Fatal(err)
	}
	keys, err := dir.Keys()
	if err != nil {
		t.Fatal(err)
	}
	const canary = "a-secret-that-nobody-may-see"
	who := datadir.Runner{OrgID: "org_1", InstallID: "ins_1"}
	sealed := func(p seal.Purpose) map[string]any {
		return leafOf(t, keys, p, `"`+canary+`"`)
	}
	input := sealed(interpolate.InputPurpose("org_1", "ins_1", "password"))
	output := sealed(interpolate.ComponentOutput("org_1", "ins_1", "res_db", "db", "dsn"))
	tree := func(change func(tree, inputs, db, web map[string]any)) map[string]any {
		inputs := map[string]any{"password": input}
		db := map[string]any{"install_component_id": "res_db", "outputs": map[string]any{"dsn": output}}
		web := map[string]any{"install_component_id": "res_web", "outputs": map[string]any{"url": "http://open"}}
		out := map[string]any{
			"inputs": map[string]any{"inputs": inputs}, "components": map[string]any{"db": db, "web": web},
			"sandbox": map[string]any{"outputs": map[string]any{}}, "app": map[string]any{"variables": map[string]any{}},
		}
		change(out, inputs, db, web)
		return out
	}
	open := func(tree any) (jobspec.Spec, error) {
		raw, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		j := &job{deps: &Deps{Keys: keys}, secrets: newSecrets(), dir: jobdir.Folder{Path: t.TempDir()}}
		j.spec = jobspec.Spec{
			OrgID: "org_1", InstallID: "ins_1", Kind: jobspec.KindAction, Operation: jobspec.OperationRun, State: raw,
			Action: &jobspec.Action{Steps: []jobspec.ActionStep{{InlineContents: "{{ .nuon | toJson }}"}}},
		}
		return j.openState()
	}
	if spec, err := open(tree(func(_, _, _, _ map[string]any) {})); err != nil || strings.Count(string(spec.State), canary) != 2 {
		t.Fatalf("the honest tree: %s, %v", spec.State, err)
	}
	state := leafOf(t, keys, datadir.StatePurpose(who, "res_db", "lin", 3), `{"serial":3,"outputs":{"x":"`+canary+`"}}`)
	for name, tc := range map[string]struct {
		change func(tree, inputs, db, web map[string]any)
		names  string // what the refusal says it is
	}{
		"a whole Terraform state as a leaf":     {func(_, in, _, _ map[string]any) { in["greeting"] = state }, `"state"`},
		"a pinned plan as a leaf":               {func(_, in, _, _ map[string]any) { in["greeting"] = sealed(datadir.PlanPurpose(who, "chg_1")) }, `"plan"`},
		"the salt as a leaf":                    {func(_, in, _, _ map[string]any) { in["greeting"] = sealed(datadir.SaltPurpose(who)) }, `"salt"`},
		"the output of a component as an input": {func(_, in, _, _ map[string]any) { in["greeting"] = output }, `"components/db/dsn"`},
		"one input as another":                  {func(_, in, _, _ map[string]any) { in["greeting"] = input }, `"password"`},
		"an input as a variable": {func(tree, _, _, _ map[string]any) {
			tree["app"] = map[string]any{"variables": map[string]any{"password": input}}
		}, `"input"`},
		"the output of another component": {func(_, _, _, web map[string]any) { web["outputs"] = map[string]any{"dsn": output} }, `"components/db/dsn"`},
		"a component under the id of another": {func(_, _, db, web map[string]any) {
			maps.Copy(web, db)
		}, `"components/db/dsn"`},
		"an output of a component as one of the sandbox": {func(tree, _, _, _ map[string]any) {
			tree["sandbox"] = map[string]any{"outputs": map[string]any{"dsn": output}}
		}, `"components/db/dsn"`},
		"a leaf of another install of the org": {func(_, in, _, _ map[string]any) {
			in["password"] = sealed(interpolate.InputPurpose("org_1", "ins_2", "password"))
		}, `"ins_2"`},
		"a leaf of another org": {func(_, in, _, _ map[string]any) {
			in["password"] = sealed(interpolate.InputPurpose("org_2", "ins_1", "password"))
		}, `"org_2"`},
		"a leaf where nothing is ever sealed": {func(tree, _, _, _ map[string]any) { tree["name"] = input }, "no sealed value belongs here"},
		"a leaf inside of a value":            {func(_, in, _, _ map[string]any) { in["deep"] = map[string]any{"password": input} }, "no sealed value belongs here"},
	} {
		spec, err := open(tree(tc.change))
		if !errors.Is(err, seal.ErrOtherPurpose) || strings.Contains(string(spec.State), canary) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v, want ErrOtherPurpose and nothing in clear", name, err)
			continue
		}
		if !strings.Contains(err.Error(), tc.names) {
			t.Errorf("%s: %v, want it to name %s", name, err, tc.names)
		}
	}

	// The other way round: a leaf as the pinned plan of a change.
	if _, err := keys.Open(datadir.PlanPurpose(who, "chg_2"), rawLeaf(t, sealed(datadir.PlanPurpose(who, "chg_1")))); !errors.Is(err, seal.ErrOtherPurpose) {
		t.Errorf("the pinned plan of another change: %v", err)
	}
}

// leafOf is a sealed leaf as it stands in a tree.
func leafOf(t *testing.T, keys datadir.Keys, purpose seal.Purpose, plain string) map[string]any {
	t.Helper()
	out, err := seal.SealLeaves(keys.Recipients(), json.RawMessage(plain), func([]string) (seal.Purpose, bool) { return purpose, true })
	if err != nil {
		t.Fatal(err)
	}
	leaf, ok := out.(map[string]any)
	if !ok {
		t.Fatalf("%v is no leaf", out)
	}
	return leaf
}

func rawLeaf(t *testing.T, leaf map[string]any) []byte {
	t.Helper()
	raw, err := json.Marshal(leaf["$sealed"])
	if err != nil {
		t.Fatal(err)
	}
	var sealed []byte
	if err := json.Unmarshal(raw, &sealed); err != nil {
		t.Fatal(err)
	}
	return sealed
}
