package module

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Parse reads a text as a value of the variable, as Terraform itself reads
// text: a string stays as it is; numbers and booleans are what they look like;
// for everything else JSON or Terraform's own notation is expected. Errors never
// repeat the text: it may be a secret.
func (v Variable) Parse(text string) (any, error) {
	switch trimmed := strings.TrimSpace(text); v.Kind {
	case String, Untyped:
		return text, nil
	case Number:
		n := json.Number(trimmed)
		if !json.Valid([]byte(trimmed)) || !isNumber(trimmed) {
			return nil, fmt.Errorf("a number is needed, the text is none (%s)", looks(trimmed))
		}
		return n, nil
	case Bool:
		switch trimmed {
		case "true", "false":
			return trimmed == "true", nil
		}
		return nil, fmt.Errorf("true or false is needed, the text is neither (%s)", looks(trimmed))
	default:
		value, err := parseExpression(trimmed)
		if err != nil && v.Kind == Any {
			return text, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s is needed, as JSON or in Terraform's notation (%s)", v.Type, looks(trimmed))
		}
		return value, nil
	}
}

func isNumber(s string) bool {
	return s != "" && (s[0] == '-' || s[0] >= '0' && s[0] <= '9')
}

// looks describes a text without repeating it.
func looks(text string) string {
	if text == "" {
		return "it is empty"
	}
	return fmt.Sprintf("it has %d characters", len([]rune(text)))
}

func parseExpression(text string) (any, error) {
	if v, err := decode([]byte(text)); err == nil {
		return v, nil
	}
	expr, diags := hclsyntax.ParseExpression([]byte(text), "value", hcl.InitialPos)
	if diags.HasErrors() {
		return nil, diags
	}
	v, diags := expr.Value(nil)
	if diags.HasErrors() {
		return nil, diags
	}
	if !v.IsWhollyKnown() {
		return nil, fmt.Errorf("the value is not known")
	}
	encoded, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		return nil, err
	}
	return decode(encoded)
}

func decode(data []byte) (any, error) {
	if !json.Valid(data) {
		return nil, fmt.Errorf("not JSON")
	}
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}
