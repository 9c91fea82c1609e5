package footprint

import (
	"encoding/json"
	"slices"
)

// awsPolicy is a policy document of AWS. One of anything may stand without its list.
type awsPolicy struct {
	Statement oneOrMore[awsStatement]
}

type awsStatement struct {
	Effect       string
	Action       oneOrMore[string]
	NotAction    oneOrMore[string]
	Resource     oneOrMore[string]
	NotResource  oneOrMore[string]
	Principal    awsPrincipal
	NotPrincipal awsPrincipal
	Condition    json.RawMessage
}

type oneOrMore[T any] []T

func (l *oneOrMore[T]) UnmarshalJSON(raw []byte) error {
	var list []T
	if json.Unmarshal(raw, &list) == nil {
		*l = list
		return nil
	}
	var one T
	if err := json.Unmarshal(raw, &one); err != nil {
		return err
	}
	*l = []T{one}
	return nil
}

// awsPrincipal are who a statement is about: "AWS arn:…", or everybody.
type awsPrincipal []string

func (p *awsPrincipal) UnmarshalJSON(raw []byte) error {
	var all string
	if json.Unmarshal(raw, &all) == nil {
		*p = awsPrincipal{everybody}
		return nil
	}
	var kinds map[string]oneOrMore[string]
	if err := json.Unmarshal(raw, &kinds); err != nil {
		return err
	}
	for _, kind := range keysOf(kinds) {
		for _, name := range kinds[kind] {
			who := kind + " " + name
			if name == "*" {
				who = everybody
			}
			*p = append(*p, who)
		}
	}
	*p = union(*p, nil)
	return nil
}

// grantsPolicy is for resources that hold a policy document.
func grantsPolicy(r resource) {
	if document := r.telling("policy"); document != "" {
		r.policy(document, "")
	}
}

// policy takes in what a document allows. on is what it is about where it names no resource.
func (r resource) policy(document, on string) {
	var p awsPolicy
	if json.Unmarshal([]byte(document), &p) != nil {
		r.cannotTell("the policy of "+r.by+", which cannot be read", r.by)
		return
	}
	for _, s := range p.Statement {
		if s.Effect != "Allow" {
			continue
		}
		to := []string(s.Principal)
		if len(s.NotPrincipal) > 0 {
			to = []string{everybody}
		}
		actions := []string(s.Action)
		for _, action := range s.NotAction {
			actions = append(actions, "* but "+action)
		}
		on := []string{on}
		switch {
		case len(s.Resource) > 0:
			on = s.Resource
		case len(s.NotResource) > 0:
			on = []string{"*"}
		case on[0] == "":
			on = []string{r.by}
		}
		for _, what := range on {
			r.grant(Grant{In: InAWS, By: r.by, To: to, Actions: actions, What: what})
		}
	}
}

// openPolicy tells a document that lets everybody in, under no condition.
func openPolicy(document string) bool {
	var p awsPolicy
	if json.Unmarshal([]byte(document), &p) != nil {
		return false
	}
	return slices.ContainsFunc(p.Statement, func(s awsStatement) bool {
		open := slices.Contains(s.Principal, everybody) || len(s.NotPrincipal) > 0
		return s.Effect == "Allow" && open && (!is(s.Condition) || string(s.Condition) == "{}")
	})
}

func awsRole(r resource) {
	if trust := r.telling("assume_role_policy"); trust != "" {
		r.policy(trust, r.by)
	}
	for _, inline := range r.blocks("inline_policy") {
		if document := text(inline, "policy"); document != "" {
			r.policy(document, "")
		}
	}
	for _, arn := range texts(r.all(), "managed_policy_arns") {
		r.grant(Grant{In: InAWS, By: r.by, To: named("role", r.text("name")), What: "policy " + arn})
	}
}

// attachment is for resources that give somebody a policy.
func attachment(to string) func(resource) {
	return func(r resource) {
		if arn := r.telling("policy_arn"); arn != "" {
			r.grant(Grant{In: InAWS, By: r.by, To: named(to, r.text(to)), What: "policy " + arn})
		}
	}
}

func lambdaPermission(r resource) {
	who := r.text("principal")
	if who == "*" {
		who = everybody
	}
	r.grant(Grant{In: InAWS, By: r.by, To: []string{who}, Actions: []string{r.text("action")}, What: "function " + r.text("function_name")})
}
