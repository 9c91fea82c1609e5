package appconfig

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/tfvars"
)

// InputsFile is inputs.toml: all groups and all inputs.
type InputsFile struct {
	// Headings under which inputs are shown.
	Groups []InputGroup `toml:"group" json:"group,omitempty"`
	// The inputs.
	Inputs []Input `toml:"input" json:"input,omitempty"`
	// Another file whose keys are merged in.
	SourceFile string `toml:"source" json:"source,omitempty"`
}

// InputGroup is a heading under which inputs are shown: a [[group]] of
// inputs.toml or one file below input_groups/.
type InputGroup struct {
	At place.Place `toml:"-" json:"at" digest:"-"`

	// What inputs call it.
	Name string `toml:"name" json:"name" rule:"required"`
	// Its title.
	DisplayName string `toml:"display_name" json:"display_name" rule:"required"`
	// What its inputs have in common.
	Description string `toml:"description" json:"description" rule:"required"`
	// Another file whose keys are merged in.
	SourceFile string `toml:"source" json:"source,omitempty"`
}

// InputType is the type of an input's value. Every value travels as a string.
type InputType string

const (
	InputString InputType = "string"
	InputNumber InputType = "number"
	InputBool   InputType = "bool"
	InputList   InputType = "list" // JSON, YAML or HCL
	InputJSON   InputType = "json" // JSON, YAML or HCL
)

// Input is a value that each install may set: an [[input]] of inputs.toml or one
// file below inputs/<group>/.
type Input struct {
	At place.Place `toml:"-" json:"at" digest:"-"`

	// What templates call it.
	Name string `toml:"name" json:"name" rule:"required"`
	// Its label.
	DisplayName string `toml:"display_name" json:"display_name" rule:"required"`
	// What it does.
	Description string `toml:"description" json:"description" rule:"required"`
	// The group that it is shown in; below inputs/<group>/ that folder's name by default.
	Group string `toml:"group" json:"group" rule:"required"`
	// The type of its value. Lists and JSON may also be written as YAML or HCL.
	Type InputType `toml:"type" json:"type" enum:"string,number,list,json,bool" default:"string"`
	// The value for installs that set none, kept as a string. The empty string is a default too.
	Default *string `toml:"default" json:"default,omitempty"`
	// The least value of a number; Berth's own key.
	Min *string `toml:"min" json:"min,omitempty"`
	// The greatest value of a number; Berth's own key.
	Max *string `toml:"max" json:"max,omitempty"`
	// A regular expression (RE2) that the whole value matches, unless it is empty; Berth's own key.
	Pattern string `toml:"pattern" json:"pattern,omitempty"`
	// Asks for a value when there is no default.
	Required bool `toml:"required" json:"required,omitempty" default:"false"`
	// Seals the value and never shows it.
	Sensitive bool `toml:"sensitive" json:"sensitive,omitempty" default:"false"`
	// Hides it from the customer's pages.
	Internal bool `toml:"internal" json:"internal,omitempty" default:"false"`
	// Lets the customer set it, through the stack.
	UserConfigurable bool `toml:"user_configurable" json:"user_configurable,omitempty" default:"false"`
	// Another file whose keys are merged in.
	SourceFile string `toml:"source" json:"source,omitempty"`
}

func (in *Input) check(c *checker) {
	if in.Type == "" {
		in.Type = InputString
	}
	c.name(in.At, "input", in.Name)
	for _, bound := range []struct {
		key   string
		value *string
	}{{"min", in.Min}, {"max", in.Max}} {
		if bound.value == nil {
			continue
		}
		if _, ok := number(*bound.value); !ok || in.Type != InputNumber {
			c.Add(place.Error, place.CodeValue, in.At.Below(bound.key), "%s of input %q must be a number, and the input one of type number", bound.key, in.Name)
			return
		}
	}
	if _, err := in.pattern(); err != nil {
		c.Add(place.Error, place.CodeValue, in.At.Below("pattern"), "pattern of input %q is no regular expression: %v", in.Name, err)
		return
	}
	if in.Default != nil {
		if problem := in.Check(*in.Default); problem != "" {
			c.Add(place.Error, place.CodeValue, in.At.Below("default"), "default of input %q %s", in.Name, problem)
		}
	}
}

// maxPattern is the longest pattern, in bytes: compiling one takes memory.
const maxPattern = 1000

// pattern compiles what a whole value must match, nil for anything.
func (in *Input) pattern() (*regexp.Regexp, error) {
	if in.Pattern == "" {
		return nil, nil
	}
	if len(in.Pattern) > maxPattern {
		return nil, fmt.Errorf("it is longer than %d bytes", maxPattern)
	}
	if _, err := regexp.Compile(in.Pattern); err != nil {
		return nil, err // of the pattern as it is written
	}
	return regexp.Compile(`^(?:` + in.Pattern + `)$`)
}

// Check tells what is wrong with a value of the input ("" when nothing is): of its
// type, its bounds and its pattern. The value may be a secret, so it is not
// repeated.
func (in *Input) Check(value string) string {
	if problem := in.Type.Check(value); problem != "" || strings.TrimSpace(value) == "" || strings.Contains(value, "{{") {
		return problem
	}
	n, isNumber := number(value)
	if low, ok := bound(in.Min); ok && isNumber && n < low {
		return "must be at least " + *in.Min
	}
	if high, ok := bound(in.Max); ok && isNumber && n > high {
		return "must be at most " + *in.Max
	}
	if pattern, err := in.pattern(); err == nil && pattern != nil && !pattern.MatchString(value) {
		return "must match " + in.Pattern
	}
	return ""
}

func bound(text *string) (float64, bool) {
	if text == nil {
		return 0, false
	}
	return number(*text)
}

// number reads a number as Terraform and JSON have it: no infinity.
func number(text string) (float64, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return n, err == nil && !math.IsInf(n, 0) && !math.IsNaN(n)
}

// Check tells what is wrong with a value of this type ("" when nothing is).
// Lists and JSON may also be YAML or HCL, which only the engine can tell, so
// they are checked as far as all of these agree. The value may be a secret, so
// it is not repeated.
func (t InputType) Check(value string) string {
	text := strings.TrimSpace(value)
	if text == "" || strings.Contains(value, "{{") {
		return ""
	}
	switch t {
	case InputNumber:
		if _, ok := number(text); !ok {
			return "must be a number"
		}
	case InputBool:
		if value != "true" && value != "false" {
			return `must be "true" or "false"`
		}
	case InputList:
		switch {
		case strings.HasPrefix(text, "{"):
			return "must be a list, not an object"
		case strings.HasPrefix(text, "["):
			return unfinished(text, "list")
		case !yamlList(text):
			return `must be a list, such as ["a", "b"]`
		}
	case InputJSON:
		if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
			return unfinished(text, "value")
		}
	}
	return ""
}

// unfinished tells of a text that begins with a bracket and ends before the other
// half of it, in JSON, HCL and YAML alike.
func unfinished(text, what string) string {
	if json.Valid([]byte(text)) || strings.HasSuffix(text, "]") || strings.HasSuffix(text, "}") {
		return ""
	}
	if problem := tfvars.Broken(text); problem != nil {
		return "must be a whole " + what + ": it " + problem.Message
	}
	return ""
}

// yamlList tells whether the first line that says anything begins an element of
// a list.
func yamlList(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line == "---" || strings.HasPrefix(line, "#") {
			continue
		}
		return line == "-" || strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "[")
	}
	return false
}
