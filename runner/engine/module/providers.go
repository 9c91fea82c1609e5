package module

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// Provider is one that a module uses, says that it requires, or configures.
type Provider struct {
	// Source is where it comes from, such as "hashicorp/aws".
	Source string
	// Version is which ones will do, as the module writes it; "" for any.
	Version string
	// Aliases are the further configurations that the module has or asks for.
	Aliases []string
}

const (
	defaultNamespace = "hashicorp"
	defaultHost      = "registry.terraform.io/"
	defaultTofuHost  = "registry.opentofu.org/"
	builtin          = "terraform" // part of Terraform itself
)

func (m *Module) provider(name string) Provider {
	p, known := m.Providers[name]
	if !known {
		p.Source = defaultNamespace + "/" + name
	}
	return p
}

func (m *Module) keep(name string, p Provider) {
	if m.Providers == nil {
		m.Providers = map[string]Provider{}
	}
	m.Providers[name] = p
}

// addRequired reads required_providers.
func (m *Module) addRequired(block *hcl.Block) {
	attributes, _ := block.Body.JustAttributes() // Terraform reports what is wrong with it
	for name, attr := range attributes {
		p := m.provider(name)
		pairs, _ := hcl.ExprMap(attr.Expr)
		for _, pair := range pairs {
			switch keyOf(pair.Key) {
			case "source":
				if v, diags := pair.Value.Value(nil); !diags.HasErrors() && v.Type() == cty.String && v.IsKnown() && !v.IsNull() {
					p.Source = strings.TrimPrefix(strings.TrimPrefix(v.AsString(), defaultHost), defaultTofuHost)
				}
			case "version":
				if v, diags := pair.Value.Value(nil); !diags.HasErrors() && v.Type() == cty.String && v.IsKnown() && !v.IsNull() {
					p.Version = v.AsString()
				}
			case "configuration_aliases":
				list, _ := hcl.ExprList(pair.Value)
				for _, item := range list {
					t, diags := hcl.AbsTraversalForExpr(item)
					if diags.HasErrors() || len(t) != 2 {
						continue
					}
					if alias, ok := t[1].(hcl.TraverseAttr); ok {
						p.addAlias(alias.Name)
					}
				}
			}
		}
		m.keep(name, p)
	}
}

func keyOf(expr hcl.Expression) string {
	if word := hcl.ExprAsKeyword(expr); word != "" {
		return word
	}
	if v, diags := expr.Value(nil); !diags.HasErrors() && v.Type() == cty.String && v.IsKnown() && !v.IsNull() {
		return v.AsString()
	}
	return ""
}

func (p *Provider) addAlias(name string) {
	if name != "" && !slices.Contains(p.Aliases, name) {
		p.Aliases = append(p.Aliases, name)
	}
}

// addConfiguration reads a provider block.
func (m *Module) addConfiguration(block *hcl.Block) {
	p := m.provider(block.Labels[0])
	content, _, _ := block.Body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "alias"}}})
	if attr := content.Attributes["alias"]; attr != nil {
		p.addAlias(keyOf(attr.Expr))
	}
	m.keep(block.Labels[0], p)
}

// addUse reads which provider a resource is of: the one that it names, or the one
// that its type begins with.
func (m *Module) addUse(block *hcl.Block) {
	name, _, _ := strings.Cut(block.Labels[0], "_")
	content, _, _ := block.Body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "provider"}}})
	if attr := content.Attributes["provider"]; attr != nil {
		if t, diags := hcl.AbsTraversalForExpr(attr.Expr); !diags.HasErrors() {
			name = t.RootName()
		}
	}
	if name != builtin {
		m.keep(name, m.provider(name))
	}
}
