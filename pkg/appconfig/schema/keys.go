package schema

import (
	"reflect"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/bind"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/appconfig/schema/fielddoc"
)

// Kind is one sort of document: a file of the app folder, one of the tables
// that such a file lists, or a component of one type.
type Kind struct {
	Name  string // what Schema and editors call it
	Files string // where it stands, for people
	// Open kinds have more keys than the listed ones.
	Open bool

	blocks []reflect.Type // the structs that share the document
}

// fileKinds lists every sort of document.
var fileKinds = slices.Concat([]Kind{
	{Name: "full", Files: "nuon.<app>.toml", blocks: types(appconfig.WholeFile{}, appconfig.Metadata{})},
	{Name: "metadata", Files: "metadata.toml", blocks: types(appconfig.Metadata{})},
	{Name: "sandbox", Files: "sandbox.toml", blocks: types(appconfig.Sandbox{})},
	{Name: "runner", Files: "runner.toml", blocks: types(appconfig.Runner{})},
	{Name: "stack", Files: "stack.toml", blocks: types(appconfig.Stack{})},
	{Name: "inputs", Files: "inputs.toml", blocks: types(appconfig.InputsFile{})},
	{Name: "input", Files: "inputs/<group>/*.toml", blocks: types(appconfig.Input{})},
	{Name: "input-group", Files: "input_groups/*.toml", blocks: types(appconfig.InputGroup{})},
	{Name: "secrets", Files: "secrets.toml", blocks: types(appconfig.SecretsFile{})},
	{Name: "secret", Files: "secrets/*.toml", blocks: types(appconfig.Secret{})},
	{Name: "permissions", Files: "permissions.toml", blocks: types(appconfig.PermissionsFile{})},
	{Name: "permission", Files: "permissions/*.toml, break_glass/*.toml", blocks: types(appconfig.Role{})},
	{Name: "break-glass", Files: "break_glass.toml", blocks: types(appconfig.BreakGlassFile{})},
	{Name: "policies", Files: "policies.toml", blocks: types(appconfig.PoliciesFile{})},
	{Name: "policy", Files: "policies/*.toml", blocks: types(appconfig.Policy{})},
	{Name: "component-root", Files: "components/**/*.toml", Open: true, blocks: types(appconfig.Component{})},
}, componentKinds(), []Kind{
	{Name: "action", Files: "actions/**/*.toml", blocks: types(appconfig.Action{})},
	{Name: "runbook", Files: "runbooks/*.toml", blocks: types(appconfig.Runbook{})},
	{Name: "install", Files: "installs/*.toml", blocks: types(appconfig.InstallConfig{})},
	{Name: "installs", Files: "installs.toml", blocks: types(appconfig.InstallsRepo{})},
	{Name: "branch", Files: "branch.toml, branches/*.toml", blocks: types(appconfig.Branch{})},
	{Name: "operation-roles", Files: "operation_roles.toml", blocks: types(appconfig.OperationRoles{})},
	{Name: "kubernetes-contexts", Files: "kubernetes_contexts.toml", blocks: types(appconfig.KubernetesContextsFile{})},
	{Name: "triggers", Files: "triggers.toml", blocks: types(appconfig.EventTriggersFile{})},
	{Name: "customer-managed", Files: "customer_managed.toml", blocks: types(appconfig.CustomerManaged{})},
	{Name: "installer", Files: "installer.toml", blocks: types(appconfig.Installer{})},
})

// componentKinds lists a document for each type of component.
func componentKinds() []Kind {
	var kinds []Kind
	for _, t := range appconfig.ComponentTypes() {
		name := t.Document()
		if n := len(kinds) - 1; n >= 0 && kinds[n].Name == name {
			kinds[n].Files += " or " + string(t)
			continue
		}
		kinds = append(kinds, Kind{
			Name: name, Files: "components/**/*.toml of type " + string(t),
			blocks: append(types(appconfig.Component{}), appconfig.TypeBlock(t)),
		})
	}
	return kinds
}

func types(blocks ...any) []reflect.Type {
	var out []reflect.Type
	for _, b := range blocks {
		out = append(out, reflect.TypeOf(b))
	}
	return out
}

// Kinds lists every sort of document that has a schema: those of the format, and the
// components of each plugin.
func Kinds(plugins ...Plugin) []Kind {
	all := slices.Clone(fileKinds)
	for _, p := range plugins {
		all = append(all, PluginKind(p))
	}
	return all
}

func fileKind(name string) (Kind, bool) {
	i := slices.IndexFunc(fileKinds, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return fileKinds[i], true
}

// Key is one key of a document as its author sees it.
type Key struct {
	// Path from the top of the document: "steps[].name" is the key of an element
	// of an array of tables, "components.*.health" one below any name.
	Path     string   `json:"path"`
	Type     string   `json:"type"` // such as "string", "get", "duration", "table"
	Doc      string   `json:"doc"`
	Required bool     `json:"required,omitempty"`
	Template bool     `json:"template,omitempty"` // rendered later with an install's state
	Default  string   `json:"default,omitempty"`
	Enum     []string `json:"enum,omitempty"`
	Aliases  []string `json:"aliases,omitempty"` // other names of the key
	Digest   string   `json:"digest,omitempty"`  // "build" or "deploy" in blocks that are built

	field reflect.StructField
	owner reflect.Type
}

// keysOf lists the keys of one block, without those of nested tables.
func keysOf(block reflect.Type) []Key {
	if block == reflect.TypeFor[appconfig.AnyComponent]() {
		var keys []Key
		for _, b := range append(types(appconfig.Component{}), appconfig.TypeBlocks()...) {
			keys = append(keys, keysOf(b)...)
		}
		return keys
	}
	var keys []Key
	for i := range block.NumField() {
		f := block.Field(i)
		if bind.Key(f) == "" {
			continue
		}
		key := Key{
			Path: bind.Key(f), Type: typeName(f), Doc: fielddoc.Of[block.Name()+"."+f.Name], Required: f.Tag.Get("rule") == "required",
			Template: f.Tag.Get("template") != "", Default: f.Tag.Get("default"), Aliases: bind.Aliases(f), field: f, owner: block,
		}
		if d := f.Tag.Get("digest"); d == "build" || d == "deploy" {
			key.Digest = d
		}
		if e := f.Tag.Get("enum"); e != "" {
			key.Enum = strings.Split(e, ",")
		} else if e, ok := reflect.Zero(f.Type).Interface().(interface{ Values() []string }); ok {
			key.Enum = e.Values()
		}
		keys = append(keys, key)
	}
	return keys
}

// typeName says what may be written as a field's value.
func typeName(f reflect.StructField) string {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		if t.Elem().Kind() == reflect.String {
			return "any"
		}
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[place.Text]():
		return "get"
	case t == reflect.TypeFor[place.Duration]():
		return "duration"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "bool"
	case reflect.Int:
		return "int"
	case reflect.Struct:
		return "table"
	case reflect.Map:
		switch t.Elem().Kind() {
		case reflect.Bool:
			return "map of bools"
		case reflect.Struct:
			return "tables by name"
		}
		return "map"
	case reflect.Slice:
		switch t.Elem().Kind() {
		case reflect.Struct:
			return "list of tables"
		case reflect.Map:
			return "list of maps"
		}
		return "list"
	}
	return "string"
}
