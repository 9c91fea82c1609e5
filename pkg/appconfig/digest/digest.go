// Package digest identifies bytes and blocks: of a block, the fields that its
// tags choose, so that what is only written differently has the same digest.
package digest

import (
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
)

// Of hashes the chosen fields of a block. Empty optional fields do not
// count, so a key added to the language later leaves old digests alone.
func Of(what string, block any, include func(tag string) bool, more ...string) string {
	canonical, err := json.Marshal([]any{"berth/" + what + "/v1", fieldsOf(reflect.ValueOf(block), include), more})
	if err != nil {
		panic(err) // only maps, lists and scalars go in
	}
	return SHA256(canonical)
}

// SHA256 is the digest of bytes: "sha256:" and the hash in hex.
func SHA256(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// All chooses every field that counts at all.
func All(tag string) bool { return tag != "-" }

// Tagged chooses the fields of one side. A field tagged "inside" is a
// struct whose own fields are tagged; so is one tagged "mixed", which counts for
// nothing on a side that has none of them.
func Tagged(side string) func(tag string) bool {
	return func(tag string) bool { return tag == side || tag == "inside" || tag == "mixed" }
}

// digestField is an exported field of a block as digests see it.
type digestField struct {
	index    int
	name     string // what JSON calls it
	optional bool   // left out when it is empty
	tag      string // of the key "digest"
}

var digestFields sync.Map // reflect.Type → []digestField

func digestFieldsOf(block reflect.Type) []digestField {
	if known, ok := digestFields.Load(block); ok {
		return known.([]digestField)
	}
	var fields []digestField
	for i := range block.NumField() {
		f := block.Field(i)
		if f.IsExported() {
			name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
			fields = append(fields, digestField{index: i, name: name, optional: opts != "", tag: f.Tag.Get("digest")})
		}
	}
	digestFields.Store(block, fields)
	return fields
}

// fieldsOf turns a value into maps, lists and scalars with the names that JSON
// uses, taking the chosen fields only. Fields below a chosen one are all taken.
func fieldsOf(v reflect.Value, include func(tag string) bool) any {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return fieldsOf(v.Elem(), include)
	case reflect.Struct:
		out := map[string]any{}
		for _, f := range digestFieldsOf(v.Type()) {
			value := v.Field(f.index)
			if !include(f.tag) || f.optional && (value.IsZero() || isEmpty(value)) {
				continue
			}
			below := All
			if f.tag == "inside" || f.tag == "mixed" {
				below = include
			}
			inner := fieldsOf(value, below)
			if table, ok := inner.(map[string]any); ok && f.tag == "mixed" && len(table) == 0 {
				continue
			}
			out[f.name] = inner
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
