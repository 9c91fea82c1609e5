package guardrail

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/policy"
)

// Sides of a request: names of policies begin with them, so that a vendor's policy cannot
// pass for a guardrail.
const (
	ofGuardrail = "guardrail:"
	ofVendor    = "policy:"
)

// Everything stands for all documents in a verdict that is about none of them.
const Everything = "the whole plan"

// Request is what the engine is asked about a plan. guarded says whether the guardrails are
// asked too: they look at nothing that changes nothing.
func (s Set) Request(c policy.Case, guarded bool) policy.Request {
	r := policy.Request{Documents: c.Documents}
	for _, rules := range c.Rules {
		rules.Name, rules.Side = ofVendor+rules.Name, policy.SideVendor
		r.Rules = append(r.Rules, rules)
	}
	if !guarded {
		return r
	}
	for _, rule := range s.Rules {
		rules := rule.Rules
		rules.Name, rules.Side = ofGuardrail+rules.Name, policy.SideCustomer
		r.Rules = append(r.Rules, rules)
	}
	return r
}

// Asked is a request and what came of it.
type Asked struct {
	Case    policy.Case
	Guarded bool
	Reply   policy.Reply
	// Failed says why there is no reply, nil when there is one.
	Failed error
	// Doubts are what is wrong with the documents.
	Doubts []string
	// Agreed says whether the customer agreed to a kind of object before.
	Agreed func(guardrail, kind string) bool
}

// Judge is what follows from a reply, for a plan.
func (s Set) Judge(a Asked) policy.Judgement {
	j := policy.Judgement{Engine: a.Reply.Engine, Development: s.Development, Answer: policy.Allow}
	for _, v := range a.Reply.Verdicts {
		if name, ours := strings.CutPrefix(v.Policy, ofVendor); ours {
			v.Policy = name
			j.Vendor = append(j.Vendor, v)
		}
	}
	if a.Failed != nil {
		for _, rules := range a.Case.Rules {
			j.Vendor = append(j.Vendor, policy.Verdict{Policy: rules.Name, Document: Everything, Result: policy.Error, Message: unjudged(a.Failed)})
		}
	}
	if !a.Guarded {
		return j
	}
	j.Guardrails = append(s.doubts(a), s.guardrails(a)...)
	if j.Answer = policy.Decide(j.Guardrails, policy.Ask); s.OnlyWarn || s.Development {
		j.Answer = atMostWarn(j.Answer)
	}
	return j
}

// atMostWarn is what becomes of an answer where guardrails only warn.
func atMostWarn(a policy.Answer) policy.Answer {
	if a == policy.Allow {
		return policy.Allow
	}
	return policy.Warn
}

func unjudged(err error) string { return "the policy engine gave no answer: " + err.Error() }

// doubts are verdicts of the runner itself, about what could not be judged.
func (s Set) doubts(a Asked) []policy.Verdict {
	var list []policy.Verdict
	doubt := func(name, message string) {
		list = append(list, policy.Verdict{Policy: name, Document: Everything, Result: policy.Error, Message: message})
	}
	for _, p := range s.Problems {
		doubt("guardrails", p.String())
	}
	for _, text := range a.Doubts {
		doubt("documents", text)
	}
	if a.Failed != nil && len(s.Rules) > 0 {
		doubt("policy engine", unjudged(a.Failed))
	}
	return list
}

// guardrails are the verdicts of the customer's side, with what each means.
func (s Set) guardrails(a Asked) []policy.Verdict {
	rules := map[string]Rule{}
	for _, r := range s.Rules {
		rules[r.Name] = r
	}
	type key struct{ component, name string }
	unchanged, kinds := map[key]bool{}, map[key]string{}
	for _, d := range a.Case.Documents {
		k := key{d.Component, d.Name}
		unchanged[k], kinds[k] = d.Unchanged(), kindOfDocument(d)
	}
	var list []policy.Verdict
	for _, v := range a.Reply.Verdicts {
		name, ours := strings.CutPrefix(v.Policy, ofGuardrail)
		rule, known := rules[name]
		k := key{v.Component, v.Document}
		if !ours || !known || unchanged[k] {
			continue
		}
		v.Policy = name
		if answer := s.Answer(rule, v.Component); answer != "" && (v.Result == policy.Fail || v.Result == policy.Warning) {
			v.Result, v.On = policy.Fail, answer
		}
		if rule.Standard != nil && rule.Standard.Once && v.Result == policy.Fail && a.Agreed != nil && a.Agreed(name, kinds[k]) {
			v.On, v.Message = policy.Allow, v.Message+" (you agreed to this kind before)"
		}
		list = append(list, v)
	}
	return list
}

// Onces are the guardrails and kinds that who agrees to a judgement is not asked about again.
func Onces(j policy.Judgement, documents []policy.Document) []Kind {
	var list []Kind
	for _, v := range j.Guardrails {
		at := slices.IndexFunc(Standards, func(s Standard) bool { return s.Name == v.Policy && s.Once })
		if at < 0 || v.Result != policy.Fail || v.On != policy.Ask {
			continue
		}
		for _, d := range documents {
			k := Kind{v.Policy, kindOfDocument(d)}
			if d.Name == v.Document && d.Component == v.Component && !slices.Contains(list, k) {
				list = append(list, k)
			}
		}
	}
	return list
}

// Kind is a kind of object that the customer agreed to.
type Kind struct {
	Guardrail string `json:"guardrail"`
	Kind      string `json:"kind"` // "ClusterRole.rbac.authorization.k8s.io"
}

// Verdict is the word on a judgement in an effect: the answer, and a digest over who says
// what of which document. Messages are not in it: they may quote values. Nor are passes: they
// would only say again which documents and rules there are, which other fields bind.
func Verdict(j policy.Judgement) string {
	type line struct {
		Side      string `json:"side"`
		Policy    string `json:"policy"`
		Rule      string `json:"rule"`
		Document  string `json:"document"`
		Component string `json:"component"`
		Result    string `json:"result"`
		On        string `json:"on"`
	}
	lines := []line{}
	for side, verdicts := range map[string][]policy.Verdict{"vendor": j.Vendor, "guardrails": j.Guardrails} {
		for _, v := range policy.Against(verdicts, policy.Deny) {
			lines = append(lines, line{side, v.Policy, v.Rule, v.Document, v.Component, string(v.Result), string(v.On)})
		}
	}
	slices.SortFunc(lines, func(a, b line) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	lines = slices.Compact(lines)
	digest, err := capsule.DigestOf(lines)
	if err != nil { // a name that is not UTF-8
		digest = capsule.DigestBytes(fmt.Appendf(nil, "%q", lines))
	}
	return string(j.Answer) + " " + digest
}

// Against are the lines for people: what stands against a change on the customer's side.
func Against(j policy.Judgement, least policy.Answer) []string {
	var lines []string
	for _, v := range policy.Against(j.Guardrails, policy.Ask) {
		if policy.Worse(v.Answer(policy.Ask), least) == v.Answer(policy.Ask) {
			lines = append(lines, v.String())
		}
	}
	return lines
}
