package appconfig

import (
	"encoding/json"
	"strconv"
	"strings"
)

// InputGroup is a heading under which inputs are shown.
type InputGroup struct {
	At Place `toml:"-" json:"at" digest:"-"`

	Name        string `toml:"name" json:"name" rule:"required"`
	DisplayName string `toml:"display_name" json:"display_name" rule:"required"`
	Description string `toml:"description" json:"description" rule:"required"`
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

// Input is a value that each install may set.
type Input struct {
	At Place `toml:"-" json:"at" digest:"-"`

	Name        string    `toml:"name" json:"name" rule:"required"`
	DisplayName string    `toml:"display_name" json:"display_name" rule:"required"`
	Description string    `toml:"description" json:"description" rule:"required"`
	Group       string    `toml:"group" json:"group" rule:"required"`
	Type        InputType `toml:"type" json:"type"` // InputString when left out
	// Default is nil when the key is missing; "" is a default too.
	Default          *string `toml:"default" json:"default,omitempty"`
	Required         bool    `toml:"required" json:"required,omitempty"`
	Sensitive        bool    `toml:"sensitive" json:"sensitive,omitempty"`
	Internal         bool    `toml:"internal" json:"internal,omitempty"`
	UserConfigurable bool    `toml:"user_configurable" json:"user_configurable,omitempty"`
}

func (in *Input) check(c *checker) {
	if in.Type == "" {
		in.Type = InputString
	}
	c.name(in.At, "input", in.Name)
	c.oneOf(in.At.key("type"), string(in.Type), string(InputString), string(InputNumber),
		string(InputList), string(InputJSON), string(InputBool))
	if in.Default != nil {
		if problem := in.Type.Check(*in.Default); problem != "" {
			c.add(Error, CodeValue, in.At.key("default"), "default of input %q %s", in.Name, problem)
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
