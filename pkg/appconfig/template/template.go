// Package template finds the strings of a block that are rendered later, and
// where in the folder they stand. Rendering is the package interpolate's.
package template

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/interpolate"
)

// Value is one string of a block that is rendered later.
type Value struct {
	At   place.Place // the key that it is the value of
	Text string      // as written
	File string      // the file or address that it was loaded from, "" when it stands at the key
	// Always is set for READMEs, which are templates whatever they mention.
	Always bool
}

// References lists what the template reads.
func (t Value) References() ([]interpolate.Reference, error) {
	if t.Always {
		return interpolate.ReferencesAlways(t.Text)
	}
	return interpolate.References(t.Text)
}

// Position finds a line of the template in the app folder.
func (t Value) Position(o *place.Origin, line int) (file string, pos place.Position) {
	if t.File != "" {
		return t.File, place.Position{Line: max(line, 1), Column: 1}
	}
	file, pos = o.Find(t.At)
	if pos.ValueLine > 0 && line > 0 {
		if written := pos.ValueLine + line - 1; written != pos.Line {
			pos.Line, pos.Column = written, 1
		}
	}
	return file, pos
}

// AtLine points a diagnostic at a line of the template.
func (t Value) AtLine(o *place.Origin, line int, d place.Diagnostic) place.Diagnostic {
	file, pos := t.Position(o, line)
	d.File, d.Line, d.Column = file, pos.Line, pos.Column
	return d
}

// In finds the fields tagged as templates in a block and below it, in
// the order of their declaration.
func In(at place.Place, block any) []Value {
	var found []Value
	collectTemplates(at, reflect.ValueOf(block), "", &found)
	return found
}

func collectTemplates(at place.Place, v reflect.Value, tag string, found *[]Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			collectTemplates(at, v.Elem(), tag, found)
		}
	case reflect.Struct:
		if text, ok := v.Interface().(place.Text); ok {
			if tag != "" {
				*found = append(*found, Value{At: at, Text: text.Contents, File: text.From(), Always: tag == "always"})
			}
			return
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() || f.Name == "At" {
				continue
			}
			below := at
			if key := f.Tag.Get("toml"); key != "-" {
				below = at.Below(key)
			}
			collectTemplates(below, v.Field(i), f.Tag.Get("template"), found)
		}
	case reflect.Slice:
		for i := range v.Len() {
			collectTemplates(at.Item(i), v.Index(i), tag, found)
		}
	case reflect.Map:
		keys := v.MapKeys() // of strings: no other key is possible in TOML
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
		for _, k := range keys {
			collectTemplates(at.Below(k.String()), v.MapIndex(k), tag, found)
		}
	case reflect.Interface:
		collectTemplates(at, v.Elem(), tag, found)
	case reflect.String:
		if tag != "" && v.Len() > 0 {
			*found = append(*found, Value{At: at, Text: v.String(), Always: tag == "always"})
		}
	}
}

// PositionOf finds what the template reads in the app folder. On the line of
// the key itself the key's column stands for it.
func (t Value) PositionOf(o *place.Origin, ref interpolate.Reference) (file string, pos place.Position) {
	file, pos = t.Position(o, ref.Line)
	if _, key := o.Find(t.At); t.File != "" || pos.Line != key.Line {
		pos.Column = ref.Column
	}
	return file, pos
}

// AtColumn points a diagnostic, whose line and column are those in the template,
// at where they are in the app folder. The column is known for files and for
// texts of several lines, else it is that of the key.
func (t Value) AtColumn(o *place.Origin, d place.Diagnostic) place.Diagnostic {
	line, column := d.Line, d.Column
	d = t.AtLine(o, line, d)
	_, key := o.Find(t.At)
	if column > 0 && (t.File != "" || key.ValueLine > 0 && (line > 1 || key.ValueLine > key.Line)) {
		d.Column = column
	}
	return d
}
