package module

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// ParseVars reads values of variables as a .tfvars file has them: assignments in
// Terraform's notation or, when it begins with a brace, one JSON object. Errors
// name lines and never repeat the text: it may have secrets in it.
func ParseVars(text string) (map[string]any, error) {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		value, err := decode([]byte(text))
		if err != nil {
			return nil, errors.New("it begins as a JSON object and is none")
		}
		vars, _ := value.(map[string]any) // it begins with a brace
		return vars, nil
	}
	file, problems := hclsyntax.ParseConfig([]byte(text), "tf_vars", hcl.InitialPos)
	if problems.HasErrors() {
		return nil, hclError(problems)
	}
	attributes, problems := file.Body.JustAttributes()
	if problems.HasErrors() {
		return nil, hclError(problems)
	}
	vars := make(map[string]any, len(attributes))
	for name, attribute := range attributes {
		value, problems := attribute.Expr.Value(nil)
		if problems.HasErrors() {
			return nil, hclError(problems)
		}
		encoded, err := ctyjson.Marshal(value, value.Type())
		if err != nil {
			return nil, fmt.Errorf("line %d: the value of %q cannot be written as JSON", attribute.Range.Start.Line, name)
		}
		if vars[name], err = decode(encoded); err != nil {
			return nil, err
		}
	}
	return vars, nil
}

// hclError is the first problem without the text that its details quote.
func hclError(problems hcl.Diagnostics) error {
	for _, p := range problems {
		if p.Severity == hcl.DiagError {
			line := 1
			if p.Subject != nil {
				line = p.Subject.Start.Line
			}
			return fmt.Errorf("line %d is not in Terraform's notation: %s", line, strings.ToLower(p.Summary))
		}
	}
	return nil
}
