package appconfig

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig/place"
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
	if in.Default != nil {
		if problem := in.Type.Check(*in.Default); problem != "" {
			c.Add(place.Error, place.CodeValue, in.At.Below("default"), "default of input %q %s", in.Name, problem)
		}
	}
}

// Check tells what is wrong with a value of this type ("" when nothing is).
// Lists and JSON may also be YAML or HCL, which only the engine can tell, so
// they are checked only where they claim to be JSON. The value may be a secret,
// so it is not repeated.
func (t InputType) Check(value string) string {
	if strings.Contains(value, "{{") {
		return ""
	}
	switch t {
	case InputNumber:
		if _, err := strconv.ParseFloat(value, 64); err != nil && value != "" {
			return "must be a number"
		}
	case InputBool:
		if value != "" && value != "true" && value != "false" {
			return `must be "true" or "false"`
		}
	case InputList:
		var list []any
		if trimmed := strings.TrimSpace(value); strings.HasPrefix(trimmed, "{") && json.Valid([]byte(trimmed)) && json.Unmarshal([]byte(trimmed), &list) != nil {
			return "must be a list, not an object"
		}
	}
	return ""
}
