package appconfig

import (
	"path"
	"slices"
)

// kind is one sort of file that an app folder may have.
type kind struct {
	name   string
	file   string // the one-file form, "" when there is none
	folder string // the folder form, walked recursively, "" when there is none
	base   string // what "./x" in a get field is relative to; "" is the app root
	// required kinds must have a definition.
	required bool
	// load reads one non-empty document; nil means "not supported yet".
	load func(l *loader, doc *document)
}

// kinds knows every file of the language. A kind without load is recognised by
// name, so that nothing is dropped in silence.
var kinds = []kind{
	{name: "metadata", file: "metadata.toml", required: true, load: (*loader).metadata},
	{name: "sandbox", file: "sandbox.toml", required: true, load: (*loader).sandbox},
	{name: "runner", file: "runner.toml", required: true, load: (*loader).runner},
	{name: "stack", file: "stack.toml", required: true, load: (*loader).stack},
	{name: "inputs", file: "inputs.toml", folder: "inputs", load: (*loader).inputs},
	{name: "input_groups", folder: "input_groups", load: (*loader).inputGroup},
	{name: "secrets", file: "secrets.toml", folder: "secrets", load: (*loader).secrets},
	{name: "components", folder: "components", base: "components", load: (*loader).component},
	{name: "actions", folder: "actions", base: "actions", load: (*loader).action},

	{name: "permissions", file: "permissions.toml", folder: "permissions", base: "permissions"},
	{name: "break_glass", file: "break_glass.toml", folder: "break_glass", base: "permissions"},
	{name: "policies", file: "policies.toml", folder: "policies"},
	{name: "runbooks", folder: "runbooks"},
	{name: "installs", file: "installs.toml", folder: "installs"},
	{name: "branches", file: "branch.toml", folder: "branches"},
	{name: "operation_roles", file: "operation_roles.toml"},
	{name: "kubernetes_contexts", file: "kubernetes_contexts.toml"},
	{name: "triggers", file: "triggers.toml"},
	{name: "customer_managed", file: "customer_managed.toml"},
}

// ignoredFiles are no part of the config: rules of an editor extension, and a
// file that no version used.
var ignoredFiles = []string{"lint.toml", "installer.toml"}

// legacyWholeFile is the old form with the whole config in one file.
func legacyWholeFile(name string) bool {
	ok, _ := path.Match("nuon.*.toml", name)
	return ok
}

// knownRootFiles lists the file names that may stand in the app root.
func knownRootFiles() []string {
	names := slices.Clone(ignoredFiles)
	for _, k := range kinds {
		if k.file != "" {
			names = append(names, k.file)
		}
	}
	return names
}
