package schema

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig"
)

// Plugin is a component type that is none of the format's own. Config is the JSON
// Schema of its keys: an object with properties.
type Plugin struct {
	Type   string
	Config json.RawMessage
}

// pluginPrefix begins the names of kinds that are plugins': a plugin may be called as
// a kind of ours is.
const pluginPrefix = "plugin-"

// PluginKind is the kind of the components of a plugin's type.
func PluginKind(p Plugin) Kind {
	return Kind{Name: pluginPrefix + p.Type, Files: "components/**/*.toml of type " + p.Type}
}

// shape describes a component of the plugin's type: the keys of every component and
// the plugin's own, which win nowhere.
func (p Plugin) shape() (object, error) {
	var config object
	if err := json.Unmarshal(p.Config, &config); err != nil {
		return nil, err
	}
	out := objectOf(reflect.TypeFor[appconfig.Component]())
	properties := out["properties"].(object)
	properties["type"].(object)["enum"] = []string{p.Type}
	own, _ := config["properties"].(object)
	for name, property := range own {
		if _, taken := properties[name]; !taken {
			properties[name] = orTemplate(property)
		}
	}
	needed, _ := config["required"].([]any)
	for _, name := range needed {
		addRequired(out, name)
	}
	addRequired(out, "berth")
	return out, nil
}

// addRequired makes a key one that has to be there, where objectOf says which are.
func addRequired(schema object, name any) {
	if then, ok := schema["then"].(object); ok {
		schema = then
	}
	text, _ := name.(string)
	list, _ := schema["required"].([]string)
	if text != "" && !slices.Contains(list, text) {
		schema["required"] = append(slices.Clone(list), text)
	}
}

// orTemplate lets a template stand where a value is wanted: what it comes to is not
// known yet. Descriptions and defaults stay where editors look for them.
func orTemplate(property any) any {
	p, ok := property.(object)
	if !ok {
		return property
	}
	value := object{}
	out := object{}
	for name, v := range p {
		switch name {
		case "title", "description", "default", "writeOnly":
			out[name] = v
		case "properties":
			inner := object{}
			if table, ok := v.(object); ok {
				for key, child := range table {
					inner[key] = orTemplate(child)
				}
			}
			value[name] = inner
		case "items":
			value[name] = orTemplate(v)
		default:
			value[name] = v
		}
	}
	if len(value) == 1 && value["type"] == "string" {
		maps.Copy(out, value)
		return out
	}
	out["anyOf"] = []any{value, object{"type": "string", "pattern": `\{\{`}}
	return out
}
