// Package output owns how things are printed: tables for people, JSON, YAML and
// names for programs.
//
// A View says once, per noun, which columns it has; everything else follows
// from the options. What programs get is the API's own JSON, all of it or
// the fields that they name.
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/visible"
)

// Format is one of the formats of -o.
type Format string

// The formats.
const (
	Table Format = "table" // for people
	Wide  Format = "wide"  // a table with every column
	JSON  Format = "json"
	YAML  Format = "yaml"
	CSV   Format = "csv"  // every column, for spreadsheets
	Name  Format = "name" // one name per line, for xargs
)

// Formats are all of them.
var Formats = []Format{Table, Wide, JSON, YAML, CSV, Name}

// Options say how to print.
type Options struct {
	Format Format
	// Fields are the paths (install.name) to print as JSON; all when empty.
	Fields []string
	Color  bool
	// Columns is how wide the terminal is; 0 when there is none, and then nothing
	// is cut or wrapped.
	Columns int
}

// Parse reads -o and --json.
func Parse(format string, fields string) (Options, error) {
	o := Options{Format: Format(format)}
	if !slices.Contains(Formats, o.Format) {
		return o, fmt.Errorf("-o %s is not a format; choose table, wide, json, yaml, csv or name", format)
	}
	if fields != "" {
		if o.Format != Table && o.Format != JSON {
			return o, fmt.Errorf("--json and -o %s cannot be used together", format)
		}
		o.Format = JSON
		for field := range strings.SplitSeq(fields, ",") {
			if field = strings.TrimSpace(field); field != "" {
				o.Fields = append(o.Fields, field)
			}
		}
	}
	return o, nil
}

// View says how a noun looks to people.
type View[T any] struct {
	Columns []Column[T]
	Name    func(T) string // what -o name prints
	// None is printed instead of an empty table.
	None string
}

// Column is one column of a table.
type Column[T any] struct {
	Head string
	Cell func(T) string
	Wide bool // only with -o wide, and when one thing is shown
	// Shrinks: cut, with …, where the table would be wider than the terminal, down
	// to Least characters (0: narrowest). Its head stays whole.
	Shrinks bool
	Least   int
	// Yields: left out where the table would be wider than the terminal even so. Of
	// several, the last goes first.
	Yields bool
}

// List prints things.
func List[T any](w io.Writer, o Options, items []T, v View[T]) error {
	switch o.Format {
	case JSON, YAML:
		if items == nil {
			items = []T{}
		}
		return program(w, o, items)
	case CSV:
		return writeCSV(w, items, v)
	case Name:
		for _, item := range items {
			if _, err := fmt.Fprintln(w, visible.Line(v.Name(item))); err != nil {
				return err
			}
		}
		return nil
	}
	if len(items) == 0 && v.None != "" {
		_, err := fmt.Fprintln(w, v.None)
		return err
	}
	var columns []Column[T]
	for _, c := range v.Columns {
		if !c.Wide || o.Format == Wide {
			columns = append(columns, c)
		}
	}
	rows := make([][]string, 1, 1+len(items))
	room := make([]room, len(columns))
	for i, c := range columns {
		rows[0] = append(rows[0], c.Head)
		if o.Format != Wide {
			room[i] = roomOf(c)
		}
	}
	for _, item := range items {
		row := make([]string, len(columns))
		for i, c := range columns {
			row[i] = cell(c.Cell(item))
		}
		rows = append(rows, row)
	}
	between := fit(&rows, room, o.Columns)
	return align(w, rows, aligned{gap: between, color: o.Color, head: true})
}

// One prints one thing, to people as a list of its columns.
func One[T any](w io.Writer, o Options, item T, v View[T]) error {
	switch o.Format {
	case JSON, YAML:
		return program(w, o, item)
	case CSV:
		return writeCSV(w, []T{item}, v)
	case Name:
		_, err := fmt.Fprintln(w, visible.Line(v.Name(item)))
		return err
	}
	rows := make([][]string, len(v.Columns))
	for i, c := range v.Columns {
		rows[i] = []string{strings.ToLower(c.Head), cell(c.Cell(item))}
	}
	return align(w, rows, aligned{gap: gap, color: o.Color})
}

// Program prints a thing that only programs, or people who read JSON, get.
func Program(w io.Writer, o Options, v any) error {
	if o.Format != YAML {
		o.Format = JSON
	}
	return program(w, o, v)
}

func program(w io.Writer, o Options, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(o.Fields) > 0 {
		if data, err = pick(data, o.Fields); err != nil {
			return err
		}
	}
	if o.Format == YAML {
		if data, err = toYAML(data); err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	}
	var tree any
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber() // numbers stay as they were written
	if err := decoder.Decode(&tree); err != nil {
		return err
	}
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(tree); err != nil {
		return err
	}
	_, err = w.Write(visible.JSON(encoded.Bytes()))
	return err
}
