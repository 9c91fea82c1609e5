package interpolate

import (
	"encoding/json"
	"strconv"

	"github.com/berth-dev/berth/pkg/seal"
)

// Where sealed leaves stand in the tree, and what each is for. Both sides use
// these: ctl-api when it seals inputs and variables, the runner when it seals the
// outputs of a job and when it opens a tree that it was sent. A leaf that the tree
// shows in another place, or under another resource, does not open.

// InputPurpose is what the sealed input of an install is for.
func InputPurpose(org, install, name string) seal.Purpose {
	return seal.Purpose{OrgID: org, InstallID: install, Kind: seal.KindInput, Path: seal.Path(name)}
}

// VariablePurpose is what a sealed variable of the app is for.
func VariablePurpose(org, install, name string) seal.Purpose {
	return seal.Purpose{OrgID: org, InstallID: install, Kind: seal.KindVariable, Path: seal.Path(name)}
}

// SecretPurpose is what a secret of the customer is sealed for, on the customer's own
// machine. The version is part of it: an older value does not pass for the present one.
func SecretPurpose(org, install, name string, version int) seal.Purpose {
	return seal.Purpose{OrgID: org, InstallID: install, Kind: seal.KindSecret, Path: seal.Path(name), Serial: int64(version)}
}

// SandboxOutput is what a sealed output of the sandbox is for. An install has one
// sandbox, and the tree does not say its id.
func SandboxOutput(org, install, name string) seal.Purpose {
	return output(org, install, "", "sandbox", name)
}

// ComponentOutput is what a sealed output of a component is for; resource is the
// component's own row of the install. The name is part of it as well: a tree that
// gives one component the id and the outputs of another does not open.
func ComponentOutput(org, install, resource, component, name string) seal.Purpose {
	return output(org, install, resource, "components", component, name)
}

// ActionOutput is what a sealed output of an action is for.
func ActionOutput(org, install, action, name string) seal.Purpose {
	return output(org, install, "", "actions", action, name)
}

// ScriptKey is where the tree of a script that is part of no release has what is sealed
// for it alone.
const ScriptKey = "script"

// ScriptPurpose is what a sensitive variable of a script that is part of no release is
// for; change is the one that runs it.
func ScriptPurpose(org, install, change, name string) seal.Purpose {
	return seal.Purpose{OrgID: org, InstallID: install, Kind: seal.KindScript, Resource: change, Path: seal.Path(name)}
}

func output(org, install, resource string, path ...string) seal.Purpose {
	return seal.Purpose{OrgID: org, InstallID: install, Kind: seal.KindOutput, Resource: resource, Path: seal.Path(path...)}
}

// SealedLeaves says for each place of an install's tree what a sealed value there
// must be for.
func SealedLeaves(org, install string, tree any) seal.Leaves {
	return func(path []string) (seal.Purpose, bool) {
		at := func(pattern ...string) bool {
			if len(path) != len(pattern) {
				return false
			}
			for i, p := range pattern {
				if p != "*" && p != path[i] {
					return false
				}
			}
			return true
		}
		switch {
		case at("inputs", "inputs", "*"):
			return InputPurpose(org, install, path[2]), true
		case at("app", "variables", "*"):
			return VariablePurpose(org, install, path[2]), true
		case at("secrets", "*", "value"):
			version, ok := secretVersion(tree, path[1])
			return SecretPurpose(org, install, path[1], version), ok
		case at("sandbox", "outputs", "*"):
			return SandboxOutput(org, install, path[2]), true
		case at("components", "*", "outputs", "*"):
			resource := text(tree, "components", path[1], "install_component_id")
			return ComponentOutput(org, install, resource, path[1], path[3]), resource != ""
		case at(ScriptKey, "env", "*"):
			change := text(tree, ScriptKey, "change_id")
			return ScriptPurpose(org, install, change, path[2]), change != ""
		case at("actions", "workflows", "*", "outputs", "steps", "*"):
			return ActionOutput(org, install, path[2], path[5]), true
		}
		return seal.Purpose{}, false
	}
}

// secretVersion is the version of a secret that a tree, read with its numbers as they
// stand, has.
func secretVersion(tree any, name string) (int, bool) {
	for _, key := range []string{"secrets", name, "version"} {
		m, _ := tree.(map[string]any)
		tree = m[key]
	}
	number, _ := tree.(json.Number)
	version, err := strconv.Atoi(number.String())
	return version, err == nil
}

// text follows keys through maps to a text, "" when there is none.
func text(tree any, keys ...string) string {
	for _, key := range keys {
		m, _ := tree.(map[string]any)
		tree = m[key]
	}
	s, _ := tree.(string)
	return s
}
