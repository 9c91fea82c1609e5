package appconfig

import (
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"strings"
)

// digestOf hashes the chosen fields of a block. Empty optional fields do not
// count, so a key added to the language later leaves old digests alone.
func digestOf(what string, block any, include func(reflect.StructField) bool, more ...string) string {
	canonical, err := json.Marshal([]any{"berth/" + what + "/v1", fieldsOf(reflect.ValueOf(block), include), more})
	if err != nil {
		panic(err) // only maps, lists and scalars go in
	}
	return sha256Of(canonical)
}

func sha256Of(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func includeAll(f reflect.StructField) bool { return f.Tag.Get("digest") != "-" }

// includeTagged chooses the fields of one side. A field tagged "inside" is a
// struct whose own fields are tagged.
func includeTagged(side string) func(reflect.StructField) bool {
	return func(f reflect.StructField) bool {
		tag := f.Tag.Get("digest")
		return tag == side || tag == "inside"
	}
}

// fieldsOf turns a value into maps, lists and scalars with the names that JSON
// uses, taking the chosen fields only. Fields below a chosen one are all taken.
func fieldsOf(v reflect.Value, include func(reflect.StructField) bool) any {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return fieldsOf(v.Elem(), include)
	case reflect.Struct:
		out := map[string]any{}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() || !include(f) {
				continue
			}
			below := includeAll
			if f.Tag.Get("digest") == "inside" {
				below = include
			}
			name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
			if opts != "" && (v.Field(i).IsZero() || isEmpty(v.Field(i))) {
				continue
			}
			out[name] = fieldsOf(v.Field(i), below)
		}
		return out
	case reflect.Slice:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = fieldsOf(v.Index(i), include)
		}
		return out
	case reflect.Map:
		out := map[string]any{}
		for _, k := range v.MapKeys() {
			out[k.String()] = fieldsOf(v.MapIndex(k), include)
		}
		return out
	}
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		text, _ := m.MarshalText()
		return string(text)
	}
	return v.Interface()
}

func isEmpty(v reflect.Value) bool {
	k := v.Kind()
	return (k == reflect.Slice || k == reflect.Map) && v.Len() == 0
}
