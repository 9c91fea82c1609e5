package appconfig

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// binder fills block structs from TOML tables. It reports every wrong type,
// every missing required key and every key that nobody knows, and goes on.
type binder struct {
	checker
	text func(at Place, value string) (Text, bool) // resolves a get field
}

// later lists keys that the language has and this version does not read yet,
// with what it means to go on without them.
var later = map[string]Severity{
	"source":             Error, // the keys of another file would be missing
	"kubernetes_context": Warning,
	"health":             Warning,
	"image":              Error, // the step would run in another place
	"pulumi_config":      Error,
}

// table binds one TOML table to one or more structs that share it.
func (b *binder) table(at Place, values map[string]any, targets ...any) {
	known := map[string]reflect.StructField{}
	for _, target := range targets {
		v := reflect.ValueOf(target).Elem()
		for i := range v.NumField() {
			f := v.Type().Field(i)
			key := f.Tag.Get("toml")
			if key == "" || key == "-" {
				continue
			}
			known[key] = f
			b.field(at, values, f, key, v.Field(i))
			if alias := f.Tag.Get("alias"); alias != "" {
				known[alias] = f
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if _, ok := known[key]; !ok {
			b.unknown(at.key(key), key, slices.Sorted(maps.Keys(known)))
		}
	}
}

func (b *binder) field(at Place, values map[string]any, f reflect.StructField, key string, into reflect.Value) {
	raw, ok := values[key]
	if alias := f.Tag.Get("alias"); alias != "" {
		if other, aliased := values[alias]; aliased && ok {
			b.add(Warning, CodeExclusive, at.key(alias), "%s does nothing, because %s is given too", alias, key)
		} else if aliased {
			raw, ok, key = other, true, alias
			b.origin.alias(at.key(f.Tag.Get("toml")), at.key(alias))
		}
	}
	if ok {
		b.value(at.key(key), raw, into)
	}
	if f.Tag.Get("rule") == "required" && (!ok || raw == "") {
		b.add(Error, CodeMissing, at, "%s is missing", f.Tag.Get("toml"))
	}
}

func (b *binder) unknown(at Place, key string, known []string) {
	if severity, ok := later[key]; ok {
		b.add(severity, CodeUnsupported, at, "key %q is not supported yet by this version", key)
		return
	}
	d := b.at(Warning, CodeUnknownKey, at, "unknown key %q", key)
	if near := nearest(key, known); near != "" {
		d = d.remedy("did you mean %q?", near)
	}
	b.diags = append(b.diags, d)
}

// value converts one TOML value to the type of a field.
func (b *binder) value(at Place, raw any, into reflect.Value) {
	if u, ok := into.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if s, ok := b.expect(at, raw, "a string").(string); ok {
			if err := u.UnmarshalText([]byte(s)); err != nil {
				b.add(Error, CodeValue, at, "%s: %v", lastKey(at), err)
			}
		}
		return
	}
	if into.Type() == reflect.TypeFor[Text]() {
		if s, ok := b.expect(at, raw, "a string").(string); ok {
			if text, ok := b.text(at, s); ok {
				into.Set(reflect.ValueOf(text))
			}
		}
		return
	}
	switch into.Kind() {
	case reflect.Pointer:
		elem := reflect.New(into.Type().Elem())
		if s, ok := scalar(raw); ok && elem.Elem().Kind() == reflect.String {
			raw = s // a default may be a native number or boolean
		} else if _, isList := raw.([]any); elem.Elem().Kind() == reflect.String && isList {
			encoded, _ := json.Marshal(raw)
			raw = string(encoded)
		}
		before := len(b.diags)
		if b.value(at, raw, elem.Elem()); len(b.diags) == before || elem.Elem().Kind() == reflect.Struct {
			into.Set(elem)
		}
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
			b.table(at, t, into.Addr().Interface())
		} else {
			b.wrongType(at, "a table", raw)
		}
	case reflect.Map:
		b.stringMap(at, raw, into)
	case reflect.Slice:
		b.list(at, raw, into)
	default:
		panic(fmt.Sprintf("appconfig: no binding for %s", into.Type()))
	}
}

// expect returns the value when it has the wanted type, else reports it.
func (b *binder) expect(at Place, raw any, want string) any {
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
	b.wrongType(at, want, raw)
	return nil
}

func (b *binder) wrongType(at Place, want string, raw any) {
	b.add(Error, CodeType, at, "%s must be %s, not %s", lastKey(at), want, describe(raw))
}

// stringMap binds a free-form map. Native booleans and numbers are as good as
// strings; dotted keys nest in TOML and are joined again.
func (b *binder) stringMap(at Place, raw any, into reflect.Value) {
	t, ok := raw.(map[string]any)
	if !ok {
		if s, isString := raw.(string); isString && lastKey(at) == "label" {
			t = map[string]any{s: ""}
		} else {
			b.wrongType(at, "a table", raw)
			return
		}
	}
	out := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(t)) {
		if s, ok := scalar(t[key]); ok {
			out[key] = s
			continue
		}
		b.diags = append(b.diags, b.at(Error, CodeType, at.key(key), "%s must be a string, a number or a boolean, not %s", key, describe(t[key])).
			remedy(`write structured values as JSON in a string, such as '["a","b"]'`))
	}
	into.Set(reflect.ValueOf(out))
}

// list binds arrays; a single table stands for an array of one.
func (b *binder) list(at Place, raw any, into reflect.Value) {
	items, ok := raw.([]any)
	if t, isTable := raw.(map[string]any); isTable && into.Type().Elem().Kind() == reflect.Struct {
		elem := reflect.New(into.Type().Elem()).Elem()
		b.origin.alias(at.item(0), at)
		b.table(at, t, elem.Addr().Interface())
		into.Set(reflect.Append(into, elem))
		return
	}
	if !ok {
		b.wrongType(at, "a list", raw)
		return
	}
	out := reflect.MakeSlice(into.Type(), len(items), len(items))
	for i, item := range items {
		b.value(at.item(i), item, out.Index(i))
	}
	into.Set(out)
}

// scalar renders a TOML scalar as the string that its author means.
func scalar(raw any) (string, bool) {
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
