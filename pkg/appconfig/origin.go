package appconfig

import (
	"fmt"
	"strconv"
)

// Origin says which files an App was read from and where each key stands.
type Origin struct {
	// Files lists everything that was read, sorted by path.
	Files []OriginFile `json:"files,omitempty"`
	// Positions maps "file#key.path" to the place of that key.
	Positions map[string]Position `json:"positions,omitempty"`
}

// OriginFile is one file that the App was read from.
type OriginFile struct {
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

// key returns the place of a key inside this object.
func (p Place) key(name string) Place {
	if p.Key != "" && name != "" {
		name = p.Key + "." + name
	}
	return Place{File: p.File, Key: name}
}

// item returns the place of the i-th element of this array.
func (p Place) item(i int) Place {
	return Place{File: p.File, Key: p.Key + "[" + strconv.Itoa(i) + "]"}
}

func (p Place) id() string { return p.File + "#" + p.Key }

// position finds the place's line and column, or those of the nearest key
// around it. It returns line 0 for a file without known keys.
func (o *Origin) position(at Place) Position {
	for {
		if pos, ok := o.Positions[at.id()]; ok || at.Key == "" {
			return pos
		}
		at = at.parent()
	}
}

// find is position together with the file that it is in.
func (o *Origin) find(at Place) (file string, pos Position) {
	if pos = o.position(at); pos.File != "" {
		return pos.File, pos
	}
	return at.File, pos
}

func (p Place) parent() Place {
	for i := len(p.Key) - 1; i > 0; i-- {
		if c := p.Key[i]; c == '.' || c == '[' {
			return Place{File: p.File, Key: p.Key[:i]}
		}
	}
	return Place{File: p.File}
}

// where renders "file:line", or just the file when the line is not known.
func (o *Origin) where(at Place) string {
	file, pos := o.find(at)
	if pos.Line > 0 {
		return fmt.Sprintf("%s:%d", file, pos.Line)
	}
	return file
}

// diagnose makes a diagnostic that points at a place.
func (o *Origin) diagnose(severity Severity, code Code, at Place, format string, args ...any) Diagnostic {
	file, pos := o.find(at)
	return Diagnostic{
		Severity: severity, Code: code, File: file, Line: pos.Line, Column: pos.Column,
		Message: fmt.Sprintf(format, args...),
	}
}

// alias records that a key was written under another name or form, so that
// its canonical place is found too.
func (o *Origin) alias(canonical, written Place) {
	if pos, ok := o.Positions[written.id()]; ok {
		o.Positions[canonical.id()] = pos
	}
}
