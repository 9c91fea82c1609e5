package schema

import (
	"path"
	"reflect"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// kindsOfFolders are the sorts of the documents in a folder.
var kindsOfFolders = map[string]string{
	"inputs": "input", "input_groups": "input-group", "secrets": "secret", "permissions": "permission", "break_glass": "permission",
	"policies": "policy", "actions": "action", "runbooks": "runbook", "installs": "install", "branches": "branch", "components": "component-root",
}

// kindsOfTypes are the sorts of components whose names are not those of their
// types.
var kindsOfTypes = map[appconfig.ComponentType]string{
	appconfig.TypeTerraformModule: "terraform", appconfig.TypeHelmChart: "helm", appconfig.TypeExternalImage: "container-image",
}

// KindOf says which sort of document a file of an app folder is, by its
// path and, for components, the value of `type`. It returns false for a file
// that is no part of the config.
func KindOf(file string, componentType string) (Kind, bool) {
	if top, _, inFolder := strings.Cut(file, "/"); inFolder {
		name := kindsOfFolders[top]
		if top == "components" {
			t := appconfig.ComponentType(componentType)
			if own, ok := kindsOfTypes[t]; ok {
				name = own
			} else if t.IsKnown() {
				name = strings.ReplaceAll(componentType, "_", "-")
			}
		}
		return fileKind(name)
	}
	if appconfig.IsWholeFile(file) {
		return fileKind("full")
	}
	return fileKind(strings.ReplaceAll(strings.TrimSuffix(file, path.Ext(file)), "_", "-"))
}

// Keys lists the keys of a document in the order of their declaration, nested
// tables after the key that holds them.
func (k Kind) Keys() []Key {
	var keys []Key
	for _, block := range k.blocks {
		keys = append(keys, keysBelow(block, "")...)
	}
	return keys
}

func keysBelow(block reflect.Type, prefix string) []Key {
	var keys []Key
	for _, key := range keysOf(block) {
		key.Path = prefix + key.Path
		keys = append(keys, key)
		if inner, suffix := tableIn(key.field.Type); inner != nil {
			keys = append(keys, keysBelow(inner, key.Path+suffix+".")...)
		}
	}
	return keys
}

// tableIn returns the block that a field holds, and what stands between the
// field's key and the block's: "" for a table, "[]" for an array of tables,
// ".*" for tables by name. It is nil for anything else.
func tableIn(t reflect.Type) (block reflect.Type, suffix string) {
	for {
		switch t.Kind() {
		case reflect.Pointer:
			t = t.Elem()
			continue
		case reflect.Slice:
			t, suffix = t.Elem(), suffix+"[]"
			continue
		case reflect.Map:
			t, suffix = t.Elem(), suffix+".*"
			continue
		}
		break
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[place.Text]() {
		return nil, ""
	}
	return t, suffix
}
