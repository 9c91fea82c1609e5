package interpolate

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
)

// refusal is a function of Sprig that templates do not get.
type refusal struct{ name, why string }

const (
	whyNetwork     = "it asks the network"
	whyEnvironment = "it reads the environment of the process"
	whyRandom      = "its answer is another one each time"
)

// refused lists Sprig's functions that templates do not get. A test compares
// it with Sprig's own list, so a new function cannot slip in.
func refused() []refusal {
	return []refusal{
		{"getHostByName", whyNetwork},
		{"env", whyEnvironment},
		{"expandenv", whyEnvironment},
		{"randAlphaNum", whyRandom},
		{"randAlpha", whyRandom},
		{"randAscii", whyRandom},
		{"randNumeric", whyRandom},
		{"randBytes", whyRandom},
		{"randInt", whyRandom},
		{"shuffle", whyRandom},
		{"uuidv4", whyRandom},
		// Random inside: keys, salts, initialisation vectors.
		{"bcrypt", whyRandom},
		{"htpasswd", whyRandom},
		{"encryptAES", whyRandom},
		{"genPrivateKey", whyRandom},
		{"genCA", whyRandom},
		{"genCAWithKey", whyRandom},
		{"genSelfSignedCert", whyRandom},
		{"genSelfSignedCertWithKey", whyRandom},
		{"genSignedCert", whyRandom},
		{"genSignedCertWithKey", whyRandom},
		{"buildCustomCert", "it only serves the functions that make certificates"},
	}
}

// accessors return something that exists already, so its size needs no check.
var accessors = []string{
	"index", "get", "dig", "first", "last", "default", "coalesce", "ternary", "pluck",
	"mustFirst", "mustLast",
}

// mutators change one of their arguments, so the state is copied first.
var mutators = []string{
	"set", "unset", "merge", "mergeOverwrite", "mustMerge", "mustMergeOverwrite",
}

// functionNames is the function table for parsing, where only the names count.
var functionNames = func() map[string]any {
	names := map[string]any{}
	for name := range publicFunctions(time.Time{}, nil, &budget{}) {
		names[name] = true
	}
	for _, builtin := range []string{"and", "or", "not", "len", "call", "eq", "ne", "lt", "le", "gt", "ge"} {
		names[builtin] = true
	}
	return names
}()

// publicFunctions are those that templates can call by name.
func publicFunctions(now time.Time, data map[string]any, b *budget) template.FuncMap {
	table := sprig.TxtFuncMap()
	for _, r := range refused() {
		delete(table, r.name)
	}
	maps.Copy(table, dateFunctions(now))
	maps.Copy(table, stableFunctions(data))
	maps.Copy(table, boundedFunctions(table, b))
	return table
}

// functions is the function table of one rendering.
func functions(now time.Time, data map[string]any, b *budget) template.FuncMap {
	table := publicFunctions(now, data, b)
	for name, fn := range table {
		table[name] = b.guard(name, fn)
	}
	f := fields{data: data, budget: b}
	table[emitName] = emit
	table[fieldName] = f.get
	table[tickName] = func(work int) (string, error) { return "", b.spend(work) }
	table[enterName] = func(work int) (string, error) { return "", b.enter(work) }
	table[leaveName] = func() string { b.depth--; return "" }
	return table
}

// Names of functions that instrumented templates call; authors cannot.
const (
	emitName  = "_emit"
	fieldName = "_field"
	tickName  = "_tick"
	enterName = "_enter"
	leaveName = "_leave"
)

// dateFunctions stand on the caller's time and on UTC instead of the host's
// clock and zone.
func dateFunctions(now time.Time) template.FuncMap {
	clock := func() (time.Time, error) {
		if now.IsZero() {
			return time.Time{}, &Error{Message: "there is no current time here"}
		}
		return now.UTC(), nil
	}
	format := func(layout string, date any) (string, error) {
		t, err := asTime(date)
		return t.Format(layout), err
	}
	modify := func(by string, t time.Time) (time.Time, error) {
		d, err := time.ParseDuration(by)
		return t.Add(d), err
	}
	parse := func(layout, text string) (time.Time, error) { return time.ParseInLocation(layout, text, time.UTC) }
	inZone := func(layout string, date any, zone string) (string, error) {
		if zone != "" && zone != "UTC" {
			return "", errorf("times are in UTC; other time zones depend on the machine")
		}
		return format(layout, date)
	}
	round := sprig.TxtFuncMap()["durationRound"].(func(any) string)
	return template.FuncMap{
		"now":              clock,
		"date":             format,
		"date_in_zone":     inZone,
		"dateInZone":       inZone,
		"htmlDateInZone":   func(date any, zone string) (string, error) { return inZone(time.DateOnly, date, zone) },
		"htmlDate":         func(date any) (string, error) { return format(time.DateOnly, date) },
		"dateModify":       modify,
		"date_modify":      modify,
		"mustDateModify":   modify,
		"must_date_modify": modify,
		"toDate":           parse,
		"mustToDate":       parse,
		"ago": func(date any) (string, error) {
			t, err := asTime(date)
			if err != nil {
				return "", err
			}
			n, err := clock()
			return n.Sub(t).Round(time.Second).String(), err
		},
		"durationRound": func(d any) (string, error) {
			t, ok := d.(time.Time)
			if !ok {
				return round(d), nil
			}
			n, err := clock()
			return round(int64(n.Sub(t))), err
		},
	}
}

func asTime(date any) (time.Time, error) {
	switch d := date.(type) {
	case time.Time:
		return d.UTC(), nil
	case int64:
		return time.Unix(d, 0).UTC(), nil
	case int32:
		return time.Unix(int64(d), 0).UTC(), nil
	case int:
		return time.Unix(int64(d), 0).UTC(), nil
	}
	return time.Time{}, errorf("wanted a time, got %T", date)
}

// stableFunctions give the same answer each time where Sprig's or Go's own
// depend on map order or on the operating system, and an error where theirs
// would print "<no value>".
func stableFunctions(data map[string]any) template.FuncMap {
	return template.FuncMap{
		"keys": func(dicts ...map[string]any) []string {
			var keys []string
			for _, d := range dicts {
				for k := range d {
					keys = append(keys, k)
				}
			}
			slices.Sort(keys)
			return keys
		},
		"values": func(dict map[string]any) []any {
			values := make([]any, 0, len(dict))
			for _, k := range sortedKeys(dict) {
				values = append(values, dict[k])
			}
			return values
		},
		"index":   func(item any, keys ...any) (any, error) { return index(data, item, keys) },
		"osBase":  path.Base,
		"osClean": path.Clean,
		"osDir":   path.Dir,
		"osExt":   path.Ext,
		"osIsAbs": path.IsAbs,
		// The built-in ones are listed so that their results are measured.
		"html":     template.HTMLEscaper,
		"js":       template.JSEscaper,
		"urlquery": template.URLQueryEscaper,
		"print":    fmt.Sprint,
		"println":  fmt.Sprintln,
		"printf":   printf,
	}
}

// index is text/template's, but a key that is not there is an error.
func index(data map[string]any, item any, keys []any) (any, error) {
	for _, key := range keys {
		if m, ok := item.(map[string]any); ok {
			name, ok := key.(string)
			if !ok {
				return nil, errorf("cannot look up a key of type %T", key)
			}
			value, ok := m[name]
			if !ok {
				return nil, missing(data, m, "", name)
			}
			item = value
			continue
		}
		v := reflect.ValueOf(item)
		switch v.Kind() {
		case reflect.Map:
			k := reflect.ValueOf(key)
			if !k.IsValid() || !k.Type().AssignableTo(v.Type().Key()) {
				return nil, errorf("cannot look up a key of type %T", key)
			}
			found := v.MapIndex(k)
			if !found.IsValid() {
				return nil, &Error{Message: fmt.Sprintf("there is no %q", key), Missing: fmt.Sprint(key)}
			}
			item = found.Interface()
		case reflect.Slice, reflect.Array, reflect.String:
			i := reflect.ValueOf(key)
			if !i.CanInt() {
				return nil, errorf("cannot use %T to look into a list", key)
			}
			if i.Int() < 0 || i.Int() >= int64(v.Len()) {
				return nil, errorf("there is no element %d in a list of %d", i.Int(), v.Len())
			}
			item = v.Index(int(i.Int())).Interface()
		default:
			return nil, errorf("cannot look up a key in %s", kindName(item))
		}
	}
	return item, nil
}

// errorf makes an error that is shown as it is: it names types, never values.
func errorf(format string, args ...any) error { return &Error{Message: fmt.Sprintf(format, args...)} }

func kindName(v any) string {
	if v == nil {
		return "null"
	}
	return "a value of type " + reflect.TypeOf(v).String()
}

// emit stands at the end of every printing action: null is an error, where
// text/template prints "<no value>".
func emit(v any) (any, error) {
	if v == nil {
		return nil, &Error{Message: "the value is null"}
	}
	return v, nil
}
