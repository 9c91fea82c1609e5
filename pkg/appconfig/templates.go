package appconfig

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/berth-dev/berth/pkg/interpolate"
)

// template is one string of a block that is rendered later.
type template struct {
	at   Place  // the key that it is the value of
	text string // as written
	file string // the file or address that it was loaded from, "" when it stands at the key
	// always is set for READMEs, which are templates whatever they mention.
	always bool
}

// references lists what the template reads.
func (t template) references() ([]interpolate.Reference, error) {
	if t.always {
		return interpolate.ReferencesAlways(t.text)
	}
	return interpolate.References(t.text)
}

// position finds a line of the template in the app folder.
func (t template) position(o *Origin, line int) (file string, pos Position) {
	if t.file != "" {
		return t.file, Position{Line: max(line, 1), Column: 1}
	}
	file, pos = o.find(t.at)
	if pos.ValueLine > 0 && line > 0 {
		if written := pos.ValueLine + line - 1; written != pos.Line {
			pos.Line, pos.Column = written, 1
		}
	}
	return file, pos
}

// diagnose points at a line of the template.
func (t template) diagnose(o *Origin, severity Severity, code Code, line int, format string, args ...any) Diagnostic {
	file, pos := t.position(o, line)
	return Diagnostic{Severity: severity, Code: code, File: file, Line: pos.Line, Column: pos.Column, Message: fmt.Sprintf(format, args...)}
}

// templatesOf finds the fields tagged as templates in a block and below it, in
// the order of their declaration.
func templatesOf(at Place, block any) []template {
	var found []template
	collectTemplates(at, reflect.ValueOf(block), "", &found)
	return found
}

func collectTemplates(at Place, v reflect.Value, tag string, found *[]template) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			collectTemplates(at, v.Elem(), tag, found)
		}
	case reflect.Struct:
		if text, ok := v.Interface().(Text); ok {
			if tag != "" {
				*found = append(*found, template{at: at, text: text.Contents, file: text.from(), always: tag == "always"})
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
				below = at.key(key)
			}
			collectTemplates(below, v.Field(i), f.Tag.Get("template"), found)
		}
	case reflect.Slice:
		for i := range v.Len() {
			collectTemplates(at.item(i), v.Index(i), tag, found)
		}
	case reflect.Map:
		keys := v.MapKeys() // of strings: no other key is possible in TOML
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
		for _, k := range keys {
			collectTemplates(at.key(k.String()), v.MapIndex(k), tag, found)
		}
	case reflect.Interface:
		collectTemplates(at, v.Elem(), tag, found)
	case reflect.String:
		if tag != "" && v.Len() > 0 {
			*found = append(*found, template{at: at, text: v.String(), always: tag == "always"})
		}
	}
}
