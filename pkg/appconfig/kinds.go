package appconfig

import (
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// kind is one sort of file that an app folder may have.
type kind struct {
	name   string
	file   string // the one-file form, "" when there is none
	folder string // the folder form, walked recursively, "" when there is none
	base   string // what "./x" in a get field is relative to; "" is the app root
	// besides makes "./x" in the folder form relative to the file itself.
	besides bool
	// required kinds must have a definition.
	required bool
	// load reads one non-empty document, or one table of a whole config in a
	// single file.
	load func(l *loader, at place.Place, values map[string]any)
}

// kindInstalls is the kind of what is no part of the app: its installs.
const kindInstalls = "installs"

// kindStack is the kind of what a folder may leave out for a runner in Azure. It
// comes after the runner.
const kindStack = "stack"

// kinds knows every file of the language.
var kinds = []kind{
	{name: "metadata", file: "metadata.toml", required: true, load: (*loader).metadata},
	{name: "sandbox", file: "sandbox.toml", required: true, load: (*loader).sandbox},
	{name: "runner", file: "runner.toml", required: true, load: (*loader).runner},
	{name: kindStack, file: "stack.toml", required: true, load: (*loader).stack},
	{name: "inputs", file: "inputs.toml", folder: "inputs", load: (*loader).inputs},
	{name: "input_groups", folder: "input_groups", load: (*loader).inputGroup},
	{name: "secrets", file: "secrets.toml", folder: "secrets", load: (*loader).secrets},
	{name: "permissions", file: "permissions.toml", folder: "permissions", base: "permissions", load: (*loader).permissions},
	{name: "break_glass", file: "break_glass.toml", folder: "break_glass", base: "permissions", load: (*loader).breakGlass},
	{name: "policies", file: "policies.toml", folder: "policies", besides: true, load: (*loader).policies},
	{name: "components", folder: "components", base: "components", load: (*loader).component},
	{name: "actions", folder: "actions", base: "actions", load: (*loader).action},
	{name: "runbooks", folder: "runbooks", base: "runbooks", load: (*loader).runbook},
	{name: kindInstalls, folder: "installs", base: "installs", load: (*loader).install},
	{name: "installs_repo", file: "installs.toml", load: (*loader).installsRepo},
	{name: "branches", file: "branch.toml", folder: "branches", load: (*loader).branch},
	{name: "operation_roles", file: "operation_roles.toml", load: (*loader).operationRoles},
	{name: "kubernetes_contexts", file: "kubernetes_contexts.toml", folder: "kubernetes_contexts", load: (*loader).kubernetesContexts},
	{name: "triggers", file: "triggers.toml", load: (*loader).eventTriggers},
	{name: "customer_managed", file: "customer_managed.toml", load: (*loader).customerManaged},
	{name: "installer", file: "installer.toml", load: (*loader).installer},
}

// LintFile is where a folder says which warnings its authors want to see; the
// package check reads it.
const LintFile = "lint.toml"

// ignoredFiles are no part of the config: see LintFile.
var ignoredFiles = []string{LintFile}

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
