package appconfig

import (
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// OperationRoles is operation_roles.toml: which role does what, in one place. A
// role that stands at the component, sandbox or action itself wins over it.
type OperationRoles struct {
	At place.Place `toml:"-" json:"at" digest:"-"`

	// The form of the file.
	Type string `toml:"type" json:"type" rule:"required" enum:"matrix"`
	// The rules.
	Rules []OperationRule `toml:"rules" json:"rules,omitempty"`
	// Another file whose keys are merged in.
	SourceFile string `toml:"source" json:"source,omitempty"`
}

// OperationRule names the role of one operation of one thing.
type OperationRule struct {
	// "nuon::sandbox", "nuon::component:<name>" or "nuon::action:<name>"; the name "*" is all of them.
	Principal string `toml:"principal" json:"principal" rule:"required"`
	// What is done with it.
	Operation string `toml:"operation" json:"operation" rule:"required" enum:"provision,reprovision,deprovision,deploy,teardown,trigger"`
	// The role that does it.
	Role string `toml:"role" json:"role" rule:"required" template:"true"`
}

// Who a rule of operation_roles.toml may be for; berth:: means the same.
const (
	PrincipalSandbox   = "sandbox"
	PrincipalComponent = "component:"
	PrincipalAction    = "action:"
)

// AnyPrincipal is the name of every component or action in a principal. A rule
// with a name wins over it.
const AnyPrincipal = "*"

// operationsOf lists what can be done with a principal.
var operationsOf = map[string][]string{
	PrincipalSandbox:   {"provision", "reprovision", "deprovision"},
	PrincipalComponent: {"deploy", "teardown"},
	PrincipalAction:    {"trigger"},
}

// Who splits a principal into its kind and its name; kind is "" when it
// has none of the three forms.
func (r OperationRule) Who() (kind, name string) {
	rest, ok := strings.CutPrefix(r.Principal, "nuon::")
	if !ok {
		rest, ok = strings.CutPrefix(r.Principal, "berth::")
	}
	if !ok {
		return "", ""
	}
	if rest == PrincipalSandbox {
		return PrincipalSandbox, ""
	}
	for _, kind := range []string{PrincipalComponent, PrincipalAction} {
		if name, ok := strings.CutPrefix(rest, kind); ok && name != "" {
			return kind, name
		}
	}
	return "", ""
}

func (o *OperationRoles) check(c *checker) {
	for i, r := range o.Rules {
		at := o.At.Below("rules").Item(i)
		kind, _ := r.Who()
		switch {
		case kind == "" && r.Principal != "":
			c.Diags = append(c.Diags, c.At(place.Error, place.CodeValue, at.Below("principal"), "principal %q is not a principal", r.Principal).
				WithRemedy("write nuon::sandbox, nuon::component:<name> or nuon::action:<name>, with \"*\" for all of them"))
		case kind != "":
			c.OneOf(at.Below("operation"), r.Operation, operationsOf[kind]...)
		}
		same := func(other OperationRule) bool {
			return other.Principal == r.Principal && other.Operation == r.Operation
		}
		if slices.ContainsFunc(o.Rules[:i], same) {
			c.Add(place.Error, place.CodeDuplicate, at.Below("operation"), "operation %q of %s has two roles", r.Operation, r.Principal)
		}
	}
}
