// Package place says where in an app folder something stands, and what is wrong
// there: places and their origin, diagnostics and the report that collects them,
// the name that a misspelt one means, and the values that keep where they came
// from. It knows nothing of the format, and imports no other room of it.
package place

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Origin says which files an App was read from and where each key stands.
type Origin struct {
	// Files lists everything that was read, sorted by path.
	Files []File `json:"files,omitempty"`
	// Positions maps "file#key.path" to the place of that key.
	Positions map[string]Position `json:"positions,omitempty"`
}

// File is one file that the App was read from.
type File struct {
	Path   string `json:"path"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// Position is a place in a file; lines and columns count from 1. For a key
// with a string of several lines, ValueLine is that of its first character.
type Position struct {
	Line      int `json:"line"`
	Column    int `json:"column"`
	ValueLine int `json:"value_line,omitempty"`
	// File is where the key stands when `source` merged it in from another file.
	File string `json:"file,omitempty"`
}

// Place is where an object or a key is declared: a file of the app folder and
// a key path in it ("" is the whole file).
type Place struct {
	File string `json:"file"`
	Key  string `json:"key,omitempty"`
}

// Below returns the place of a key inside this object.
func (p Place) Below(name string) Place {
	if p.Key != "" && name != "" {
		name = p.Key + "." + name
	}
	return Place{File: p.File, Key: name}
}

// Item returns the place of the i-th element of this array.
func (p Place) Item(i int) Place {
	return Place{File: p.File, Key: p.Key + "[" + strconv.Itoa(i) + "]"}
}

// ID is the key of Origin.Positions.
func (p Place) ID() string { return p.File + "#" + p.Key }

// Position finds the place's line and column, or those of the nearest key
// around it. It returns line 0 for a file without known keys.
func (o *Origin) Position(at Place) Position {
	for {
		if pos, ok := o.Positions[at.ID()]; ok || at.Key == "" {
			return pos
		}
		at = at.Parent()
	}
}

// Find is position together with the file that it is in.
func (o *Origin) Find(at Place) (file string, pos Position) {
	if pos = o.Position(at); pos.File != "" {
		return pos.File, pos
	}
	return at.File, pos
}

// Last is the last part of the key: "command" of "steps[0].command".
func (p Place) Last() string {
	key := p.Key
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		key = key[i+1:]
	}
	return key
}

// Parent is the place of the key around this one, at last that of the file.
func (p Place) Parent() Place {
	for i := len(p.Key) - 1; i > 0; i-- {
		if c := p.Key[i]; c == '.' || c == '[' {
			return Place{File: p.File, Key: p.Key[:i]}
		}
	}
	return Place{File: p.File}
}

// Where renders "file:line", or just the file when the line is not known.
func (o *Origin) Where(at Place) string {
	file, pos := o.Find(at)
	if pos.Line > 0 {
		return fmt.Sprintf("%s:%d", file, pos.Line)
	}
	return file
}

// Diagnose makes a diagnostic that points at a place.
func (o *Origin) Diagnose(severity Severity, code Code, at Place, format string, args ...any) Diagnostic {
	file, pos := o.Find(at)
	return Diagnostic{
		Severity: severity, Code: code, File: file, Line: pos.Line, Column: pos.Column,
		Message: fmt.Sprintf(format, args...),
	}
}

// Alias records that a key was written under another name or form, so that
// its canonical place is found too.
func (o *Origin) Alias(canonical, written Place) {
	if pos, ok := o.Positions[written.ID()]; ok {
		o.Positions[canonical.ID()] = pos
	}
}

// Compare orders by file and key.
func Compare(a, b Place) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Key, b.Key))
}
