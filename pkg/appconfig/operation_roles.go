package appconfig

import (
	"slices"
	"strings"
)

// OperationRoles is operation_roles.toml: which role does what, in one place. A
// role that stands at the component, sandbox or action itself wins over it.
type OperationRoles struct {
	At Place `toml:"-" json:"at" digest:"-"`

	// The form of the file.
	Type string `toml:"type" json:"type" rule:"required" enum:"matrix"`
	// The rules.
	Rules []OperationRule `toml:"rules" json:"rules,omitempty"`
	// Another file whose keys are merged in.
	SourceFile string `toml:"source" json:"source,omitempty"`
}

// OperationRule names the role of one operation of one thing.
type OperationRule struct {
	// "nuon::sandbox", "nuon::component:<name>" or "nuon::action:<name>".
	Principal string `toml:"principal" json:"principal" rule:"required"`
	// What is done with it.
	Operation string `toml:"operation" json:"operation" rule:"required" enum:"provision,reprovision,deprovision,deploy,teardown,trigger"`
	// The role that does it.
	Role string `toml:"role" json:"role" rule:"required" template:"true"`
}

// Who a rule of operation_roles.toml may be for; berth:: means the same.
const (
	principalSandbox   = "sandbox"
	principalComponent = "component:"
	principalAction    = "action:"
)

// operationsOf lists what can be done with a principal.
var operationsOf = map[string][]string{
	principalSandbox:   {"provision", "reprovision", "deprovision"},
	principalComponent: {"deploy", "teardown"},
	principalAction:    {"trigger"},
}

// principal splits a principal into its kind and its name; kind is "" when it
// has none of the three forms.
func (r OperationRule) principal() (kind, name string) {
	rest, ok := strings.CutPrefix(r.Principal, "nuon::")
	if !ok {
		rest, ok = strings.CutPrefix(r.Principal, "berth::")
	}
	if !ok {
		return "", ""
	}
	if rest == principalSandbox {
		return principalSandbox, ""
	}
	for _, kind := range []string{principalComponent, principalAction} {
		if name, ok := strings.CutPrefix(rest, kind); ok && name != "" {
			return kind, name
		}
	}
	return "", ""
}

func (o *OperationRoles) check(c *checker) {
	for i, r := range o.Rules {
		at := o.At.key("rules").item(i)
		kind, _ := r.principal()
		switch {
		case kind == "" && r.Principal != "":
			c.diags = append(c.diags, c.at(Error, CodeValue, at.key("principal"), "principal %q is not a principal", r.Principal).
				remedy("write nuon::sandbox, nuon::component:<name> or nuon::action:<name>"))
		case kind != "":
			c.oneOf(at.key("operation"), r.Operation, operationsOf[kind]...)
		}
		same := func(other OperationRule) bool {
			return other.Principal == r.Principal && other.Operation == r.Operation
		}
		if slices.ContainsFunc(o.Rules[:i], same) {
			c.add(Error, CodeDuplicate, at.key("operation"), "operation %q of %s has two roles", r.Operation, r.Principal)
		}
	}
}

// operationRoles checks that the principals exist.
func (v *validator) operationRoles() {
	if v.app.OperationRoles == nil {
		return
	}
	var actions []string
	for _, a := range v.app.Actions {
		actions = append(actions, a.Name)
	}
	for i, r := range v.app.OperationRoles.Rules {
		at := v.app.OperationRoles.At.key("rules").item(i).key("principal")
		switch kind, name := r.principal(); kind {
		case principalComponent:
			v.exists(at, "component", name, v.componentNames(), "components")
		case principalAction:
			v.exists(at, "action", name, actions, "actions")
		}
	}
}
