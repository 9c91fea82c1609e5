// Package bind fills structs from TOML tables by their tags, merges in the files
// that `source` names, and reports every key and value that does not fit. Which
// structs there are is the format's business (package appconfig).
package bind

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/berth-dev/berth/pkg/appconfig/fetch"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/appconfig/syntax"
)

// Binder fills block structs from TOML tables. It reports every wrong type,
// every missing required key and every unknown key, and continues.
type Binder struct {
	*place.Report
	Base    string                                                              // what "./x" is relative to in the kind being loaded; "" is the app root
	Text    func(at place.Place, value string) (place.Text, bool)               // resolves a get field
	Include func(at place.Place, source string) (doc *syntax.Document, ok bool) // reads a file that `source` names; no document when it is not fetched yet
	Wanted  []fetch.Wanted                                                      // files to merge in that are not fetched
	Lost    []place.Place                                                       // where a file from elsewhere cannot be merged in
}

// Table binds one TOML table to one or more structs that share it.
func (b *Binder) Table(at place.Place, values map[string]any, targets ...any) {
	b.TableAmong(at, values, nil, targets...)
}

// TableAmong is table for a table that may also have the keys of other blocks,
// which are left alone.
func (b *Binder) TableAmong(at place.Place, values map[string]any, also []reflect.Type, targets ...any) {
	var known keySets
	for _, other := range also {
		known = append(known, Keys(other))
	}
	for _, target := range targets {
		known = append(known, Keys(reflect.TypeOf(target).Elem()))
	}
	t := table{at: at}
	t.merges = slices.ContainsFunc(targets, func(target any) bool { return MergesFiles(reflect.TypeOf(target).Elem()) })
	if t.merges {
		values, t.partial = b.Included(at, values)
	}
	t.values = values
	b.unknownKeys(at, values, known)
	var missing []field
	for _, target := range targets {
		v := reflect.ValueOf(target).Elem()
		for i := range v.NumField() {
			f := field{v.Type().Field(i), v.Field(i)}
			if Key(f.StructField) != "" && !b.field(t, f) {
				missing = append(missing, f)
			}
		}
	}
	for _, f := range missing {
		b.missing(t, f)
	}
}

// field is a field of a block and where its value goes.
type field struct {
	reflect.StructField
	into reflect.Value
}

// Key is the key of a field, "" when no key fills it.
func Key(f reflect.StructField) string {
	if key := f.Tag.Get("toml"); key != "-" {
		return key
	}
	return ""
}

// Aliases lists the other names of a field's key.
func Aliases(f reflect.StructField) []string {
	if names := f.Tag.Get("alias"); names != "" {
		return strings.Split(names, ",")
	}
	return nil
}

// MergesFiles tells whether `source` in a block names a file to merge in; in a
// values file it is an older name of contents.
func MergesFiles(block reflect.Type) bool {
	_, ok := block.FieldByName("SourceFile")
	return ok
}

// keySets are the keys that several blocks know.
type keySets []map[string]bool

func (s keySets) have(key string) bool {
	return slices.ContainsFunc(s, func(known map[string]bool) bool { return known[key] })
}

// names lists the keys, sorted.
func (s keySets) names() []string {
	var names []string
	for _, known := range s {
		names = slices.AppendSeq(names, maps.Keys(known))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// keysOfTypes keeps what Keys finds: there are few types, and each of them
// is asked for once per table.
var keysOfTypes sync.Map // reflect.Type → map[string]bool

// Keys lists every key that a block knows, other names too. The caller
// does not change it.
func Keys(block reflect.Type) map[string]bool {
	if known, ok := keysOfTypes.Load(block); ok {
		return known.(map[string]bool)
	}
	known := map[string]bool{}
	for i := range block.NumField() {
		f := block.Field(i)
		if key := Key(f); key != "" {
			known[key] = true
		}
		for _, alias := range Aliases(f) {
			known[alias] = true
		}
	}
	keysOfTypes.Store(block, known)
	return known
}

// table is what is written of a block.
type table struct {
	at      place.Place
	values  map[string]any
	merges  bool // `source` names a file to merge in
	partial bool // more of it is in a file that is not here
}

// field binds what is written of a field; false when it is required and missing.
func (b *Binder) field(t table, f field) bool {
	at, key := t.at, Key(f.StructField)
	raw, ok := t.values[key]
	for _, alias := range Aliases(f.StructField) {
		other, aliased := t.values[alias]
		switch {
		case aliased && ok:
			b.Add(place.Warning, place.CodeExclusive, at.Below(alias), "%s does nothing, because %s is given too", alias, key)
		case aliased:
			raw, ok = other, true
			b.aliasAll(at.Below(f.Tag.Get("toml")), at.Below(alias), raw)
			key = alias
		}
	}
	if ok {
		if f.Tag.Get("base") == "." {
			defer func(base string) { b.Base = base }(b.Base)
			b.Base = ""
		}
		if s, isString := raw.(string); isString && (key == "path" || key == "source") && f.Type == reflect.TypeFor[place.Text]() && !fetch.IsAddress(s) && !namesFile(s) {
			raw = "./" + s // these names of the key always name a file
		}
		b.value(at.Below(key), raw, f.into)
		b.checkText(at.Below(key), f.StructField, f.into)
	}
	return f.Tag.Get("rule") != "required" || ok && raw != "" || t.partial
}

// missing reports a required key that is not there. When it is misspelt, its
// value is taken all the same, so that nothing else is missing because of it.
func (b *Binder) missing(t table, f field) {
	key := Key(f.StructField)
	written, misspelt := b.MisspeltAs(t.at, append([]string{key}, Aliases(f.StructField)...)...)
	if !misspelt {
		if t.merges && b.Misspelt(t.at, "source") {
			return
		}
		d := b.At(place.Error, place.CodeMissing, t.at, "%s is missing", key)
		if example := f.Tag.Get("example"); example != "" {
			d = d.WithRemedy("for example %s = %q", key, example)
		}
		b.Diags = append(b.Diags, d)
		return
	}
	if raw, ok := t.values[written]; ok && raw != "" {
		b.aliasAll(t.at.Below(key), t.at.Below(written), raw)
		t.values = map[string]any{key: raw}
		b.field(t, f)
	}
}

// checkText checks the value of a key that is a string: it is one of those
// allowed, and an address has no credentials in it.
func (b *Binder) checkText(at place.Place, f reflect.StructField, into reflect.Value) {
	if into.Kind() != reflect.String {
		return
	}
	if allowed := f.Tag.Get("enum"); allowed != "" && !strings.Contains(into.String(), "{{") {
		b.OneOf(at, into.String(), strings.Split(allowed, ",")...)
	}
	if fetch.NamesAddress(Key(f)) && fetch.HasCredentials(into.String()) {
		b.Diags = append(b.Diags, b.At(place.Error, place.CodeValue, at, "%s has credentials in it, which would be stored with the app: %s", at.Last(), fetch.WithoutCredentials(into.String())).
			WithRemedy("take them out of the app folder, and change them: they were written down"))
	}
}

// namesFile tells values that name a file by a path.
func namesFile(value string) bool {
	return strings.HasPrefix(value, "./") || strings.HasPrefix(value, "../") || strings.HasPrefix(value, "file://")
}

// aliasAll records that a key and all below it were written under another name.
func (b *Binder) aliasAll(canonical, written place.Place, raw any) {
	b.Origin.Alias(canonical, written)
	switch v := raw.(type) {
	case map[string]any:
		for key, value := range v {
			b.aliasAll(canonical.Below(key), written.Below(key), value)
		}
	case []any:
		for i, item := range v {
			b.aliasAll(canonical.Item(i), written.Item(i), item)
		}
	}
}

// maxUnknownKeys is how many unknown keys of one table get their own message: a
// table with more of them is something else.
const maxUnknownKeys = 100

func (b *Binder) unknownKeys(at place.Place, values map[string]any, known keySets) {
	var unknown []string
	for key := range values {
		if !known.have(key) {
			unknown = append(unknown, key)
		}
	}
	if len(unknown) == 0 {
		return
	}
	slices.Sort(unknown)
	names := known.names()
	for _, key := range unknown[:min(len(unknown), maxUnknownKeys)] {
		b.Unknown(at, key, names)
	}
	if more := len(unknown) - maxUnknownKeys; more > 0 {
		b.Add(place.Warning, place.CodeUnknownKey, at, "%d more keys are unknown", more)
	}
}

// value converts one TOML value to the type of a field.
func (b *Binder) value(at place.Place, raw any, into reflect.Value) {
	if u, ok := into.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if s, ok := b.expect(at, raw, "a string").(string); ok {
			if err := u.UnmarshalText([]byte(s)); err != nil {
				b.Add(place.Error, place.CodeValue, at, "%s: %v", at.Last(), err)
			}
		}
		return
	}
	if into.Type() == reflect.TypeFor[place.Text]() {
		if s, ok := b.expect(at, raw, "a string").(string); ok {
			if text, ok := b.Text(at, s); ok {
				into.Set(reflect.ValueOf(text))
			}
		}
		return
	}
	switch into.Kind() {
	case reflect.Pointer:
		b.pointer(at, raw, into)
	case reflect.String:
		if s, ok := b.expect(at, raw, "a string").(string); ok {
			into.SetString(s)
		}
	case reflect.Bool:
		if v, ok := b.expect(at, raw, "true or false").(bool); ok {
			into.SetBool(v)
		}
	case reflect.Int:
		if n, ok := b.expect(at, raw, "a whole number").(int64); ok {
			into.SetInt(n)
		}
	case reflect.Struct:
		if t, ok := raw.(map[string]any); ok {
			b.Table(at, t, into.Addr().Interface())
		} else {
			b.WrongType(at, "a table", raw)
		}
	case reflect.Map:
		if into.Type().Elem().Kind() == reflect.String {
			b.stringMap(at, raw, into)
		} else {
			b.tableMap(at, raw, into)
		}
	case reflect.Slice:
		b.list(at, raw, into)
	default:
		panic(fmt.Sprintf("appconfig: no binding for %s", into.Type()))
	}
}

// pointer binds a value that may be left out.
func (b *Binder) pointer(at place.Place, raw any, into reflect.Value) {
	elem := reflect.New(into.Type().Elem())
	if s, ok := Scalar(raw); ok && elem.Elem().Kind() == reflect.String {
		raw = s // a default may be a native number or boolean
	} else if _, isList := raw.([]any); elem.Elem().Kind() == reflect.String && isList {
		encoded, _ := json.Marshal(raw)
		raw = string(encoded)
	}
	before := len(b.Diags)
	if b.value(at, raw, elem.Elem()); len(b.Diags) == before || elem.Elem().Kind() == reflect.Struct {
		into.Set(elem)
	}
}

// expect returns the value when it has the wanted type, else reports it.
func (b *Binder) expect(at place.Place, raw any, want string) any {
	ok := false
	switch raw.(type) {
	case string:
		ok = want == "a string"
	case bool:
		ok = want == "true or false"
	case int64:
		ok = want == "a whole number"
	}
	if ok {
		return raw
	}
	b.WrongType(at, want, raw)
	return nil
}

// WrongType reports a value that is of another type than the key takes.
func (b *Binder) WrongType(at place.Place, want string, raw any) {
	b.Add(place.Error, place.CodeType, at, "%s must be %s, not %s", at.Last(), want, describe(raw))
}

// stringMap binds a free-form map. Native booleans and numbers are as good as
// strings; dotted keys nest in TOML and are joined again.
func (b *Binder) stringMap(at place.Place, raw any, into reflect.Value) {
	t, ok := raw.(map[string]any)
	if !ok {
		if s, isString := raw.(string); isString && at.Last() == "label" {
			t = map[string]any{s: ""}
		} else {
			b.WrongType(at, "a table", raw)
			return
		}
	}
	out := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(t)) {
		if s, ok := Scalar(t[key]); ok {
			out[key] = s
			continue
		}
		b.Diags = append(b.Diags, b.At(place.Error, place.CodeType, at.Below(key), "%s must be a string, a number or a boolean, not %s", key, describe(t[key])).
			WithRemedy(`write structured values as JSON in a string, such as '["a","b"]'`))
	}
	into.Set(reflect.ValueOf(out))
}

// tableMap binds a map whose values are not free text.
func (b *Binder) tableMap(at place.Place, raw any, into reflect.Value) {
	t, ok := raw.(map[string]any)
	if !ok {
		b.WrongType(at, "a table", raw)
		return
	}
	out := reflect.MakeMap(into.Type())
	for _, key := range slices.Sorted(maps.Keys(t)) {
		elem := reflect.New(into.Type().Elem()).Elem()
		b.value(at.Below(key), t[key], elem)
		out.SetMapIndex(reflect.ValueOf(key), elem)
	}
	into.Set(out)
}

// list binds arrays; a single table stands for an array of one.
func (b *Binder) list(at place.Place, raw any, into reflect.Value) {
	items, ok := raw.([]any)
	if t, isTable := raw.(map[string]any); isTable && into.Type().Elem().Kind() != reflect.String {
		elem := reflect.New(into.Type().Elem()).Elem()
		b.aliasAll(at.Item(0), at, t)
		b.value(at.Item(0), t, elem)
		into.Set(reflect.Append(into, elem))
		return
	}
	if !ok {
		b.WrongType(at, "a list", raw)
		return
	}
	out := reflect.MakeSlice(into.Type(), len(items), len(items))
	for i, item := range items {
		b.value(at.Item(i), item, out.Index(i))
	}
	into.Set(out)
}

// Scalar renders a TOML scalar as the string that its author means.
func Scalar(raw any) (string, bool) {
	switch v := raw.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case time.Time:
		return v.Format(time.RFC3339Nano), true
	case toml.LocalDate:
		return v.String(), true
	case toml.LocalDateTime:
		return v.String(), true
	case toml.LocalTime:
		return v.String(), true
	}
	return "", false
}

func describe(raw any) string {
	switch raw.(type) {
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case int64:
		return "a whole number"
	case float64:
		return "a decimal number"
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	}
	return "a date or time"
}
