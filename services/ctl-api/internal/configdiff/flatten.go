package configdiff

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// flatten writes every value below v to out, by its path: the JSON names with
// dots between, elements of a list by their name where they have one, else by
// their number. What is empty is left out, as it is in the stored config.
func flatten(out map[string]string, path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			flatten(out, path, v.Elem())
		}
		return
	case reflect.Slice:
		flattenList(out, path, v)
		return
	case reflect.Map:
		for _, key := range v.MapKeys() {
			flatten(out, join(path, key.String()), v.MapIndex(key))
		}
		return
	case reflect.Struct:
		for i := range v.NumField() {
			name, ok := jsonName(v.Type().Field(i))
			if ok && !v.Field(i).IsZero() {
				flatten(out, join(path, name), v.Field(i))
			}
		}
		return
	}
	out[path] = jsonOf(v)
}

// flattenList takes a list of plain values as one value. It flattens a list of
// objects element by element, and adds the order of their names, which may
// matter.
func flattenList(out map[string]string, path string, v reflect.Value) {
	if v.Len() == 0 {
		return
	}
	if kind := v.Type().Elem().Kind(); kind != reflect.Struct && kind != reflect.Map {
		out[path] = jsonOf(v)
		return
	}
	names := make([]string, v.Len())
	seen := map[string]bool{}
	for i := range names {
		if v.Index(i).Kind() != reflect.Struct {
			names = nil
			break
		}
		if f := fieldNamed(v.Index(i), "name"); f.IsValid() {
			names[i] = f.String()
		}
		if names[i] == "" || seen[names[i]] {
			names = nil
			break
		}
		seen[names[i]] = true
	}
	for i := range v.Len() {
		index := strconv.Itoa(i)
		if names != nil {
			index = names[i]
		}
		flatten(out, path+"["+index+"]", v.Index(i))
	}
	if len(names) > 1 {
		out[path] = jsonOf(reflect.ValueOf(names))
	}
}

var (
	placeType  = reflect.TypeFor[place.Place]()
	originType = reflect.TypeFor[place.Origin]()
)

// jsonName is what a field is called in the stored config; false for what says
// only where something is written, and for what is not stored.
func jsonName(f reflect.StructField) (string, bool) {
	if !f.IsExported() || f.Type == placeType || f.Type == originType || f.Tag.Get("digest") == "-" {
		return "", false
	}
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name, name != "-" && name != ""
}

// fieldNamed finds the field with this JSON name; the zero Value when there is
// none.
func fieldNamed(v reflect.Value, name string) reflect.Value {
	if v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	for i := range v.NumField() {
		if n, ok := jsonName(v.Type().Field(i)); ok && n == name {
			return v.Field(i)
		}
	}
	return reflect.Value{}
}

func join(path, name string) string {
	if strings.ContainsAny(name, ".[]") {
		return path + "[" + name + "]"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

func jsonOf(v reflect.Value) string {
	value := v.Interface()
	if text, ok := value.(encoding.TextMarshaler); ok {
		raw, _ := text.MarshalText() // those of appconfig cannot fail
		value = string(raw)
	}
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err) // plain values only
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func put(fields map[string]string, path, value string) {
	if value != "" {
		fields[path] = jsonOf(reflect.ValueOf(value))
	}
}
