// Package configdiff says what differs between two versions of an app: what
// was added, removed and changed, and each changed field with its old and new
// value.
//
// It compares what the folders mean, from the stored configs alone: where
// something is written, in which file and on which line, makes no difference.
// Values that nobody may see (defaults of sensitive inputs, of secrets) are
// compared and not told. It does no I/O.
package configdiff

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/berth-dev/berth/pkg/appconfig"
)

// Change says what became of an object.
type Change string

// The values of Change.
const (
	Added   Change = "added"
	Removed Change = "removed"
	Changed Change = "changed"
)

// Kinds of objects that are built. The others are named as the app folder
// names them; see kinds.
const (
	KindSandbox   = "sandbox"
	KindComponent = "component"
)

// Object is something of an app that differs.
type Object struct {
	Kind   string
	Name   string // empty for kinds that exist once
	Change Change
	// Build and Deploy are of the sandbox and of components: whether another
	// artifact is made, and whether it is deployed with other settings.
	Build, Deploy bool
	Fields        []Field // of what changed
}

// Field is one field of an object. Before and After are JSON, or empty where
// there is none.
type Field struct {
	Path, Before, After string
}

// Version is one of the two that are compared.
type Version struct {
	App *appconfig.App
	// Items says of the sandbox and of each component what it is made of, by
	// Key.
	Items map[string]Item
}

// Item is what one buildable is made of.
type Item struct {
	BuildDigest, DeployDigest string
	Content                   string // digest of an uploaded source; empty for others
	Artifact                  string // of a release; empty for a config
}

// Key names an item in a Version.
func Key(kind, name string) string {
	if kind == KindSandbox {
		return KindSandbox
	}
	return kind + "/" + name
}

// kinds names the objects of each field of appconfig.App by the field's JSON
// name, in the order in which they are listed.
var kinds = []struct{ field, kind string }{
	{"metadata", "metadata"},
	{"runner", "runner"},
	{"stack", "stack"},
	{"input_groups", "input_group"},
	{"inputs", "input"},
	{"secrets", "secret"},
	{"sandbox", KindSandbox},
	{"components", KindComponent},
	{"actions", "action"},
	{"runbooks", "runbook"},
	{"policies", "policy"},
	{"permissions", "permission"},
	{"break_glass", "break_glass"},
	{"operation_roles", "operation_roles"},
	{"kubernetes_contexts", "kubernetes_context"},
	{"triggers", "trigger"},
	{"branches", "branch"},
	{"installs_repo", "installs_repo"},
	{"installer", "installer"},
	{"includes", "include"},
}

// Compare lists what differs, in the order of the kinds and then by name. Equal
// versions give an empty list.
func Compare(before, after Version) []Object {
	hide := hiding(before.App, after.App)
	was, is := objectsOf(before), objectsOf(after)
	var all []Object
	for _, k := range kinds {
		names := map[string]bool{}
		for name := range was[k.kind] {
			names[name] = true
		}
		for name := range is[k.kind] {
			names[name] = true
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			old, had := was[k.kind][name]
			now, has := is[k.kind][name]
			o := Object{Kind: k.kind, Name: name}
			switch {
			case !had:
				o.Change = Added
			case !has:
				o.Change = Removed
			default:
				o.Change = Changed
				o.Fields = fieldsThatDiffer(old, now, hide(k.kind, name))
			}
			key := Key(k.kind, name)
			a, b := before.Items[key], after.Items[key]
			o.Build, o.Deploy = a.BuildDigest != b.BuildDigest, a.DeployDigest != b.DeployDigest
			if o.Change != Changed || len(o.Fields) > 0 || o.Build || o.Deploy {
				all = append(all, o)
			}
		}
	}
	return all
}

// objectsOf finds the objects of a version: kind, name, and each field by path.
func objectsOf(v Version) map[string]map[string]map[string]string {
	all := map[string]map[string]map[string]string{}
	if v.App == nil {
		return all
	}
	app := reflect.ValueOf(v.App).Elem()
	for _, k := range kinds {
		field := fieldNamed(app, k.field)
		all[k.kind] = map[string]map[string]string{}
		add := func(name string, value reflect.Value) {
			fields := map[string]string{}
			flatten(fields, "", value)
			item := v.Items[Key(k.kind, name)]
			put(fields, "source.digest", item.Content)
			put(fields, "artifact.digest", item.Artifact)
			all[k.kind][name] = fields
		}
		switch field.Kind() {
		case reflect.Slice:
			for i := range field.Len() {
				add(nameIn(field.Index(i), i, all[k.kind]), field.Index(i))
			}
		case reflect.Pointer:
			if !field.IsNil() {
				add("", field.Elem())
			}
		default:
			add("", field)
		}
	}
	return all
}

// nameIn is what an element of a list is called. When two have the same name,
// which the rules of some kinds allow, their order tells them apart.
func nameIn(value reflect.Value, index int, taken map[string]map[string]string) string {
	name := strconv.Itoa(index + 1)
	for _, field := range []string{"name", "address"} {
		if f := fieldNamed(value, field); f.IsValid() && f.String() != "" {
			name = f.String()
			break
		}
	}
	for n, plain := 2, name; ; n++ {
		if _, ok := taken[name]; !ok {
			return name
		}
		name = plain + "#" + strconv.Itoa(n)
	}
}

func fieldsThatDiffer(before, after map[string]string, hidden func(path string) bool) []Field {
	paths := map[string]bool{}
	for path := range before {
		paths[path] = true
	}
	for path := range after {
		paths[path] = true
	}
	var fields []Field
	for path := range paths {
		f := Field{Path: path, Before: before[path], After: after[path]}
		if f.Before == f.After {
			continue
		}
		if hidden(path) {
			f.Before, f.After = masked(f.Before), masked(f.After)
		}
		fields = append(fields, f)
	}
	slices.SortFunc(fields, func(a, b Field) int { return cmp.Compare(a.Path, b.Path) })
	return fields
}
