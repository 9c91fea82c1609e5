package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Schema is the part of JSON Schema (2020-12) that plugins describe their config
// with. Any other keyword is an error where the manifest is read: a rule that
// nothing enforces would be worse than none.
type Schema struct {
	Meta        string `json:"$schema,omitempty"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`

	Type       string            `json:"type,omitempty"`
	Properties map[string]Schema `json:"properties,omitempty"`
	Required   []string          `json:"required,omitempty"`
	// AdditionalProperties is true, false or left out; a config never takes keys
	// that its schema does not name.
	AdditionalProperties *bool   `json:"additionalProperties,omitempty"`
	Items                *Schema `json:"items,omitempty"`
	Enum                 []any   `json:"enum,omitempty"`
	Default              any     `json:"default,omitempty"`
	Pattern              string  `json:"pattern,omitempty"`
	MinLength            *int    `json:"minLength,omitempty"`
	MaxLength            *int    `json:"maxLength,omitempty"`
	Minimum              *int64  `json:"minimum,omitempty"`
	Maximum              *int64  `json:"maximum,omitempty"`
	// WriteOnly marks a secret: no plan shows its value.
	WriteOnly bool `json:"writeOnly,omitempty"`
}

const typeObject = "object"

// Problem is what is wrong with one value. The message never repeats the value.
type Problem struct {
	Path    string // "replicas", "users[2].name"; "" is the whole config
	Message string
	Unknown bool // the schema has no such key
}

func (p Problem) String() string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

// What a schema may be at most: enough for any config, and little work for one who
// reads one that is made to be a burden.
const (
	maxDepth   = 16
	maxKeys    = 500 // in all, at every depth
	maxPattern = 300 // characters
	maxDefault = 64 << 10
)

// check says what is wrong with the schema itself.
func (s Schema) check() error {
	if n := s.count(0); n > maxKeys {
		return fmt.Errorf("it has more than %d keys, or tables more than %d deep", maxKeys, maxDepth)
	}
	return s.checkPart()
}

// count counts the keys; a schema that is too deep has too many.
func (s Schema) count(depth int) int {
	if depth > maxDepth {
		return maxKeys + 1
	}
	n := len(s.Properties)
	for _, property := range s.Properties {
		if n += property.count(depth + 1); n > maxKeys {
			return n
		}
	}
	if s.Items != nil {
		n += s.Items.count(depth + 1)
	}
	return n
}

func (s Schema) checkPart() error {
	var errs []error
	switch s.Type {
	case "", typeObject, "array", "string", "integer", "number", "boolean":
	default:
		errs = append(errs, fmt.Errorf("type %q is not supported", s.Type))
	}
	if len(s.Pattern) > maxPattern {
		errs = append(errs, fmt.Errorf("pattern is longer than %d characters", maxPattern))
	} else if _, err := regexp.Compile(s.Pattern); err != nil {
		errs = append(errs, fmt.Errorf("pattern: %w", err))
	}
	for _, name := range s.Required {
		if _, there := s.Properties[name]; !there {
			errs = append(errs, fmt.Errorf("required names %q, which is no property", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if err := s.Properties[name].checkPart(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
		// Each is a file of the job's directory.
		if strings.ContainsAny(name, "/\x00") || name == "" || name[0] == '.' {
			errs = append(errs, fmt.Errorf("property %q has a name that no file can have", name))
		}
	}
	if s.Items != nil {
		errs = append(errs, s.Items.checkPart())
	}
	if err := errors.Join(errs...); err != nil || s.Default == nil {
		return err
	}
	return s.checkDefault()
}

// checkDefault says why the default is none that a config may have.
func (s Schema) checkDefault() error {
	if raw, err := json.Marshal(s.Default); err != nil || len(raw) > maxDefault {
		return fmt.Errorf("default is larger than %d bytes", maxDefault)
	}
	c := completion{isOpen: func(string) bool { return false }}
	c.value(s, "default", s.Default)
	if len(c.problems) > 0 {
		return errors.New(c.problems[0].String())
	}
	return nil
}

// Complete is a copy of config with the defaults of all keys that are left out,
// and what is wrong with it. isOpen says of a text that it is not known yet, such
// as a template before it is rendered: it fits everything. It may be nil.
func (s Schema) Complete(config map[string]any, isOpen func(string) bool) (map[string]any, []Problem) {
	if isOpen == nil {
		isOpen = func(string) bool { return false }
	}
	s.Type = typeObject
	c := completion{isOpen: isOpen}
	whole, _ := c.value(s, "", config).(map[string]any)
	return whole, c.problems
}

// Secrets are the names of the keys at the top whose values no plan may show.
func (s Schema) Secrets() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if s.Properties[name].WriteOnly {
			names = append(names, name)
		}
	}
	return names
}

type completion struct {
	isOpen   func(string) bool
	problems []Problem
}

func (c *completion) add(path, format string, args ...any) {
	c.problems = append(c.problems, Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

func (c *completion) value(s Schema, path string, v any) any {
	if text, ok := v.(string); ok && c.isOpen(text) {
		return v
	}
	if len(s.Enum) > 0 && !slices.ContainsFunc(s.Enum, func(e any) bool { return reflect.DeepEqual(plain(e), plain(v)) }) {
		c.add(path, "is none of the values that are possible: %s", list(s.Enum))
		return v
	}
	switch s.Type {
	case typeObject:
		return c.object(s, path, v)
	case "array":
		return c.array(s, path, v)
	case "string":
		c.text(s, path, v)
	case "boolean":
		if _, ok := v.(bool); !ok {
			c.add(path, "is not true or false")
		}
	case "integer", "number":
		c.number(s, path, v)
	}
	return v
}

func (c *completion) object(s Schema, path string, v any) any {
	table, ok := v.(map[string]any)
	if !ok {
		c.add(path, "is not a table")
		return v
	}
	out := make(map[string]any, len(table))
	for _, name := range slices.Sorted(maps.Keys(table)) {
		property, known := s.Properties[name]
		if !known && (path == "" || len(s.Properties) > 0) && (path == "" || s.AdditionalProperties == nil || !*s.AdditionalProperties) {
			c.problems = append(c.problems, Problem{Path: below(path, name), Message: "is no key of this plugin", Unknown: true})
			continue
		}
		out[name] = c.value(property, below(path, name), table[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if _, given := out[name]; given {
			continue
		}
		switch property := s.Properties[name]; {
		case property.Default != nil:
			out[name] = property.Default
		case slices.Contains(s.Required, name):
			c.add(below(path, name), "is missing")
		}
	}
	return out
}

func (c *completion) array(s Schema, path string, v any) any {
	items, ok := v.([]any)
	if !ok {
		c.add(path, "is not a list")
		return v
	}
	if s.Items == nil {
		return v
	}
	out := make([]any, len(items))
	for i := range items {
		out[i] = c.value(*s.Items, fmt.Sprintf("%s[%d]", path, i), items[i])
	}
	return out
}

func (c *completion) text(s Schema, path string, v any) {
	text, ok := v.(string)
	n := utf8.RuneCountInString(text)
	switch {
	case !ok:
		c.add(path, "is not text")
	case s.MinLength != nil && n < *s.MinLength:
		c.add(path, "is shorter than %d characters", *s.MinLength)
	case s.MaxLength != nil && n > *s.MaxLength:
		c.add(path, "is longer than %d characters", *s.MaxLength)
	case s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(text):
		c.add(path, "does not match %s", s.Pattern)
	}
}

func (c *completion) number(s Schema, path string, v any) {
	n, ok := new(big.Rat).SetString(fmt.Sprint(v))
	if _, text := v.(string); text || !ok {
		c.add(path, "is not a number")
		return
	}
	switch {
	case s.Type == "integer" && !n.IsInt():
		c.add(path, "is not a whole number")
	case s.Minimum != nil && n.Cmp(new(big.Rat).SetInt64(*s.Minimum)) < 0:
		c.add(path, "is less than %d", *s.Minimum)
	case s.Maximum != nil && n.Cmp(new(big.Rat).SetInt64(*s.Maximum)) > 0:
		c.add(path, "is more than %d", *s.Maximum)
	}
}

// plain is a value as JSON has it, so that 1 and 1.0 are the same.
func plain(v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		return v
	}
	var out any
	if json.Unmarshal(raw, &out) != nil {
		return v
	}
	return out
}

func list(values []any) string {
	texts := make([]string, len(values))
	for i, v := range values {
		raw, _ := json.Marshal(v) // it came from JSON
		texts[i] = string(raw)
	}
	return strings.Join(texts, ", ")
}

func below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
