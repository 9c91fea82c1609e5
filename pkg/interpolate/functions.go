package interpolate

import (
	"fmt"
	"reflect"
	"slices"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
)

// dropped lists Sprig's functions that templates do not get, by reason. A test
// compares it with Sprig's own list, so a new function cannot slip in.
var dropped = []string{
	// network and environment
	"getHostByName", "env", "expandenv",
	// random
	"randAlphaNum", "randAlpha", "randAscii", "randNumeric", "randBytes", "randInt", "uuidv4", "shuffle",
	// random inside: keys, salts, initialisation vectors
	"bcrypt", "htpasswd", "genPrivateKey", "genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey",
	"genSignedCert", "genSignedCertWithKey", "encryptAES", "buildCustomCert",
	// the host's time zone data
	"date_in_zone", "dateInZone", "htmlDateInZone",
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
	for name := range functions(time.Time{}, &budget{}) {
		names[name] = true
	}
	for _, builtin := range []string{"and", "or", "not", "len", "slice", "call", "html", "js", "urlquery", "eq", "ne", "lt", "le", "gt", "ge"} {
		names[builtin] = true
	}
	return names
}()

// functions is the function table of one rendering.
func functions(now time.Time, b *budget) template.FuncMap {
	table := sprig.TxtFuncMap()
	for _, name := range dropped {
		delete(table, name)
	}
	for name, fn := range dateFunctions(now) {
		table[name] = fn
	}
	for name, fn := range stableFunctions() {
		table[name] = fn
	}
	for name, fn := range boundedFunctions(table) {
		table[name] = fn
	}
	for name, fn := range table {
		table[name] = b.guard(name, fn)
	}
	table[emitName] = emit
	table[tickName] = func() (string, error) { return "", b.tick() }
	return table
}

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
	round := sprig.TxtFuncMap()["durationRound"].(func(any) string)
	return template.FuncMap{
		"now":              clock,
		"date":             format,
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
	case int:
		return time.Unix(int64(d), 0).UTC(), nil
	}
	return time.Time{}, errorf("wanted a time, got %T", date)
}

// stableFunctions give the same answer each time where Sprig's or Go's own
// depend on map order, and an error where theirs would print "<no value>".
func stableFunctions() template.FuncMap {
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
		"index":   index,
		"print":   fmt.Sprint,
		"println": fmt.Sprintln,
		"printf":  fmt.Sprintf,
	}
}

// index is text/template's, but a key that is not there is an error.
func index(item any, keys ...any) (any, error) {
	for _, key := range keys {
		v := reflect.ValueOf(item)
		for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
			v = v.Elem()
		}
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

const (
	emitName = "_emit"
	tickName = "_tick"
)

// emit stands at the end of every printing action: null is an error, where
// text/template prints "<no value>".
func emit(v any) (any, error) {
	if v == nil {
		return nil, &Error{Message: "the value is null"}
	}
	return v, nil
}
