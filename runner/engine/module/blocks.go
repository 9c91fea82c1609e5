package module

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

var (
	rootSchema = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
		{Type: "terraform"},
		{Type: "variable", LabelNames: []string{"name"}},
		{Type: "module", LabelNames: []string{"name"}},
		{Type: "provider", LabelNames: []string{"name"}},
		{Type: "resource", LabelNames: []string{"type", "name"}},
		{Type: "data", LabelNames: []string{"type", "name"}},
		{Type: "ephemeral", LabelNames: []string{"type", "name"}},
	}}
	terraformSchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "required_version"}}, Blocks: []hcl.BlockHeaderSchema{
		{Type: "backend", LabelNames: []string{"type"}},
		{Type: "cloud"}, {Type: "required_providers"}, {Type: "encryption"},
	}}
	variableSchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{
		{Name: "type"}, {Name: "default"}, {Name: "sensitive"}, {Name: "ephemeral"},
	}}
	callSchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "source"}, {Name: "version"}}}
)

// add reads the blocks of a file. Files are added in Terraform's order, so
// that what an override file says replaces what was there.
func (m *Module) add(file *hcl.File, src []byte) hcl.Diagnostics {
	content, _, problems := file.Body.PartialContent(rootSchema)
	for _, block := range content.Blocks {
		switch block.Type {
		case "terraform":
			problems = append(problems, m.addSettings(block)...)
		case "variable":
			problems = append(problems, m.addVariable(block, src)...)
		case "module":
			problems = append(problems, m.addCall(block)...)
		case "provider":
			m.addConfiguration(block)
		default:
			m.addUse(block)
		}
	}
	return problems
}

func (m *Module) addSettings(block *hcl.Block) hcl.Diagnostics {
	content, _, problems := block.Body.PartialContent(terraformSchema)
	if attr := content.Attributes["required_version"]; attr != nil {
		if v, diags := attr.Expr.Value(nil); !diags.HasErrors() && v.Type() == cty.String && v.IsKnown() && !v.IsNull() {
			m.Versions = append(m.Versions, v.AsString())
		}
	}
	for _, b := range content.Blocks {
		if b.Type == "required_providers" {
			m.addRequired(b)
			continue
		}
		if b.Type == "encryption" {
			m.EncryptionAt = place(b.DefRange)
			continue
		}
		m.Backend, m.BackendAt = "cloud", place(b.DefRange)
		if b.Type == "backend" {
			m.Backend = b.Labels[0]
		}
	}
	return problems
}

func (m *Module) addVariable(block *hcl.Block, src []byte) hcl.Diagnostics {
	content, _, problems := block.Body.PartialContent(variableSchema)
	name := block.Labels[0]
	v, known := m.Variables[name]
	if !known {
		v = Variable{Name: name, Required: true, At: place(block.DefRange)}
	}
	for key, attr := range content.Attributes {
		switch key {
		case "type":
			v.Kind, v.Type = kindOf(attr.Expr), string(attr.Expr.Range().SliceBytes(src))
		case "default":
			v.Required = false
		case "sensitive":
			v.Sensitive = isTrue(attr.Expr)
		case "ephemeral":
			v.Ephemeral = isTrue(attr.Expr)
		}
	}
	m.Variables[name] = v
	return problems
}

func (m *Module) addCall(block *hcl.Block) hcl.Diagnostics {
	content, _, problems := block.Body.PartialContent(callSchema)
	call := Call{Name: block.Labels[0], At: place(block.DefRange)}
	call.Source, call.Version = constant(content.Attributes["source"]), constant(content.Attributes["version"])
	m.Calls = append(m.Calls, call)
	return problems
}

// constant is the text that an attribute is written as, "" when it is no plain text.
func constant(attr *hcl.Attribute) string {
	if attr == nil {
		return ""
	}
	if v, diags := attr.Expr.Value(nil); !diags.HasErrors() && v.Type() == cty.String && v.IsKnown() && !v.IsNull() {
		return v.AsString()
	}
	return ""
}

// kindOf reads a type expression: a keyword, a constructor such as
// list(string), or, as very old modules write it, a keyword in quotes.
func kindOf(expr hcl.Expression) Kind {
	keyword := hcl.ExprAsKeyword(expr)
	if keyword == "" {
		if v, diags := expr.Value(nil); !diags.HasErrors() && v.Type() == cty.String && v.IsKnown() && !v.IsNull() {
			keyword = v.AsString()
		}
	}
	switch Kind(keyword) {
	case String, Number, Bool, Any:
		return Kind(keyword)
	}
	return Collection
}

func isTrue(expr hcl.Expression) bool {
	v, diags := expr.Value(nil)
	return !diags.HasErrors() && v.Type() == cty.Bool && v.IsKnown() && !v.IsNull() && v.True()
}
