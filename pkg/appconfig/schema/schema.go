// Package schema describes the format for editors, tools and readers: every sort
// of document with its keys, as a list and as JSON Schema. What the comments of
// the structs say is generated into fielddoc.
package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/bind"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/appconfig/schema/fielddoc"
)

// Of returns the JSON Schema (draft 2020-12) of one kind of document, for
// editors and other tools that check TOML by it. It says what keys there are
// and what their values look like; rules between keys only loading and checking
// know. The same kind gives the same bytes. plugins are those of one app: a component
// of a plugin's type has a kind of its own, and can stand in one file with the rest.
func Of(kind string, plugins ...Plugin) ([]byte, error) {
	i := slices.IndexFunc(plugins, func(p Plugin) bool { return PluginKind(p).Name == kind })
	if i >= 0 {
		schema, err := plugins[i].shape()
		if err != nil {
			return nil, err
		}
		return finish(schema, PluginKind(plugins[i]), reflect.TypeFor[appconfig.Component]())
	}
	k, ok := fileKind(kind)
	if !ok {
		var names []string
		for _, k := range Kinds(plugins...) {
			names = append(names, k.Name)
		}
		return nil, fmt.Errorf("there is no schema %q; there are %s", kind, strings.Join(names, ", "))
	}
	schema := objectOf(k.blocks...)
	if err := addPlugins(schema, plugins); err != nil {
		return nil, err
	}
	return finish(schema, k, k.blocks[len(k.blocks)-1])
}

// addPlugins lets the components of a whole file be of plugins' types, key by key.
func addPlugins(schema object, plugins []Plugin) error {
	components, ok := schema["properties"].(object)["components"].(object)
	if !ok || len(plugins) == 0 {
		return nil
	}
	forms, ok := components["anyOf"].([]object)
	if !ok {
		return nil // the key of that name is another one
	}
	items, ok := forms[0]["items"].(object)
	if !ok {
		return nil
	}
	options, ok := items["anyOf"].([]object)
	if !ok {
		return nil
	}
	known := options[len(options)-1]["properties"].(object)["type"].(object)["not"].(object)
	names := slices.Clone(known["enum"].([]string))
	for _, p := range plugins {
		shape, err := p.shape()
		if err != nil {
			return err
		}
		options, names = append(options, shape), append(names, p.Type)
	}
	known["enum"], items["anyOf"] = names, options
	return nil
}

// finish says at the top of a schema what it is of.
func finish(schema object, k Kind, block reflect.Type) ([]byte, error) {
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = k.Files
	schema["description"] = fielddoc.Of[block.Name()]
	if k.Open {
		schema["additionalProperties"] = true
	}
	return json.MarshalIndent(schema, "", "  ")
}

type object = map[string]any

// objectOf describes the table that some blocks share.
func objectOf(blocks ...reflect.Type) object {
	properties := object{}
	var required []string
	for _, block := range blocks {
		for _, key := range keysOf(block) {
			property := valueOf(key)
			properties[key.Path] = property
			for _, alias := range key.Aliases {
				other := object{"deprecated": true}
				for name, value := range property {
					other[name] = value
				}
				if other["type"] == "object" {
					other["type"] = []string{"object", "string"} // a label may be one word
				}
				properties[alias] = other
			}
			if key.Required && len(key.Aliases) == 0 {
				required = append(required, key.Path)
			}
		}
	}
	out := object{"type": "object", "properties": properties, "additionalProperties": false}
	if !slices.ContainsFunc(blocks, bind.MergesFiles) && len(required) > 0 {
		out["required"] = required // with source, any key may stand in the other file
	} else if len(required) > 0 {
		out["if"] = object{"not": object{"required": []string{"source"}}}
		out["then"] = object{"required": required}
	}
	return out
}

// scalars are what free maps hold: booleans and numbers are as good as strings.
var scalars = []string{"string", "number", "boolean"}

// valueOf describes the value of a key.
func valueOf(key Key) object {
	out := shapeOf(key.field.Type)
	out["description"] = key.Doc
	if len(key.Enum) > 0 {
		out["enum"] = key.Enum
	}
	switch value := key.Default; {
	case value == "":
	case key.Type == "bool":
		out["default"] = value == "true"
	case key.Type == "int":
		out["default"], _ = strconv.Atoi(value)
	default:
		out["default"] = value
	}
	return out
}

func shapeOf(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[place.Text]():
		return object{"type": "string"}
	case t == reflect.TypeFor[place.Duration]():
		return object{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`}
	}
	switch t.Kind() {
	case reflect.Pointer:
		if t.Elem().Kind() == reflect.String {
			return object{"type": append(slices.Clone(scalars), "array")}
		}
		return shapeOf(t.Elem())
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int:
		return object{"type": "integer"}
	case reflect.Struct:
		if t == reflect.TypeFor[appconfig.AnyComponent]() {
			return anyComponentShape()
		}
		return objectOf(t)
	case reflect.Map:
		if t.Elem().Kind() == reflect.String {
			return object{"type": "object", "additionalProperties": object{"type": scalars}}
		}
		return object{"type": "object", "additionalProperties": shapeOf(t.Elem())}
	case reflect.Slice:
		items := shapeOf(t.Elem())
		if t.Elem().Kind() == reflect.String {
			return object{"type": "array", "items": items}
		}
		return object{"anyOf": []object{{"type": "array", "items": items}, items}} // a single table stands for a list of one
	}
	return object{"type": "string"}
}

// anyComponentShape describes a component of any type: the keys of its own type
// by the value of `type`, and any keys for a plugin's.
func anyComponentShape() object {
	var options []object
	for _, name := range appconfig.ComponentTypeNames() {
		block := appconfig.TypeBlock(appconfig.ComponentType(name))
		one := objectOf(reflect.TypeFor[appconfig.Component](), block)
		one["properties"].(object)["type"].(object)["enum"] = []string{name}
		options = append(options, one)
	}
	plugin := objectOf(reflect.TypeFor[appconfig.Component]())
	plugin["properties"].(object)["type"].(object)["not"] = object{"enum": appconfig.ComponentTypeNames()}
	plugin["additionalProperties"] = true
	return object{"anyOf": append(options, plugin)}
}
