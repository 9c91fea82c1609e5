package stage

import (
	"reflect"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// Block is one definition of an app folder, of whatever kind.
type Block struct {
	Part Part // "component/api", "role/NAME", "policy/NAME"
	At   place.Place
	// value is a pointer to the definition.
	value any
}

// Kinds of blocks that have no name of their own in appconfig.
const (
	kindSecret     = "secret"
	kindInput      = "input"
	kindInputGroup = "input-group"
	kindBreakGlass = "break-glass"
	kindContext    = "kubernetes-context"
	kindBranch     = "branch"
	kindInstall    = "install"
	kindTrigger    = "trigger"
)

// Blocks lists every definition of an app.
func Blocks(app *appconfig.App) []Block {
	var all []Block
	add := func(kind, name string, at place.Place, value any) {
		all = append(all, Block{Part: Part(strings.TrimSuffix(kind+"/"+name, "/")), At: at, value: value})
	}
	if app.Sandbox != nil {
		add(appconfig.BlockSandbox, "", app.Sandbox.At, app.Sandbox)
	}
	if app.Stack != nil {
		add(appconfig.BlockStack, "", app.Stack.At, app.Stack)
	}
	for i := range app.Components {
		add(appconfig.BlockComponent, app.Components[i].Name, app.Components[i].At, &app.Components[i])
	}
	for i := range app.Actions {
		add(appconfig.BlockAction, app.Actions[i].Name, app.Actions[i].At, &app.Actions[i])
	}
	for i := range app.Permissions {
		add(appconfig.BlockRole, app.Permissions[i].Name, app.Permissions[i].At, &app.Permissions[i])
	}
	for i := range app.BreakGlass {
		add(kindBreakGlass, app.BreakGlass[i].Name, app.BreakGlass[i].At, &app.BreakGlass[i])
	}
	for i := range app.Policies {
		add(appconfig.BlockPolicy, app.Policies[i].Name, app.Policies[i].At, &app.Policies[i])
	}
	for i := range app.Runbooks {
		add(appconfig.BlockRunbook, app.Runbooks[i].Name, app.Runbooks[i].At, &app.Runbooks[i])
	}
	for i := range app.Secrets {
		add(kindSecret, app.Secrets[i].Name, app.Secrets[i].At, &app.Secrets[i])
	}
	for i := range app.Inputs {
		add(kindInput, app.Inputs[i].Name, app.Inputs[i].At, &app.Inputs[i])
	}
	for i := range app.InputGroups {
		add(kindInputGroup, app.InputGroups[i].Name, app.InputGroups[i].At, &app.InputGroups[i])
	}
	for i := range app.KubernetesContexts {
		add(kindContext, app.KubernetesContexts[i].Name, app.KubernetesContexts[i].At, &app.KubernetesContexts[i])
	}
	for i := range app.Branches {
		add(kindBranch, app.Branches[i].Name, app.Branches[i].At, &app.Branches[i])
	}
	for i := range app.Installs {
		add(kindInstall, app.Installs[i].Name, app.Installs[i].At, &app.Installs[i])
	}
	for i := range app.EventTriggers {
		add(kindTrigger, app.EventTriggers[i].Name, app.EventTriggers[i].At, &app.EventTriggers[i])
	}
	if app.OperationRoles != nil {
		add(appconfig.BlockOperationRoles, "", app.OperationRoles.At, app.OperationRoles)
	}
	return append(all, Block{Part: appconfig.BlockMetadata, At: app.Metadata.At, value: &app.Metadata})
}

// in tells whether a place is in a block.
func (b Block) in(at place.Place) bool {
	return b.At.File == at.File && (b.At.Key == "" || at.Key == b.At.Key || strings.HasPrefix(at.Key, b.At.Key+".") || strings.HasPrefix(at.Key, b.At.Key+"["))
}

// PartAt is the definition that a place is in.
func PartAt(app *appconfig.App, at place.Place) (Part, bool) {
	for _, b := range Blocks(app) {
		if b.in(at) {
			return b.Part, true
		}
	}
	return "", false
}

// Blame is the definition that a finding is about: one that begins before it in its
// file, or that loads the file; "" for none.
func Blame(app *appconfig.App, d place.Diagnostic) Part {
	best, line := Part(""), -1
	for _, b := range Blocks(app) {
		file, pos := app.Origin.Find(b.At)
		if file != d.File && b.At.File != d.File {
			continue
		}
		at := pos.Line
		if b.At.Key == "" {
			at = 0 // the whole file
		}
		if at > line && (at <= d.Line || d.Line == 0) {
			best, line = b.Part, at
		}
	}
	if best != "" || d.File == "" {
		return best
	}
	for _, b := range Blocks(app) {
		if slices.Contains(files(reflect.ValueOf(b.value)), d.File) {
			return b.Part
		}
	}
	for _, src := range appconfig.Sources(app) {
		if src.Kind == appconfig.SourceLocal && (src.Directory == "." || d.File == src.Directory || strings.HasPrefix(d.File, strings.TrimSuffix(src.Directory, "/")+"/")) {
			return Part(strings.TrimSuffix(src.Block+"/"+src.Name, "/"))
		}
	}
	return ""
}

// files are those that the texts of a definition come from.
func files(v reflect.Value) (all []string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return files(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			all = append(all, files(v.Index(i))...)
		}
	case reflect.Struct:
		if text, ok := v.Interface().(place.Text); ok {
			return []string{text.File}
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				all = append(all, files(v.Field(i))...)
			}
		}
	}
	return all
}
