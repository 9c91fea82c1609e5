package kyverno

import (
	"context"
	"slices"
	"strings"

	kyvernov1 "github.com/kyverno/kyverno/api/kyverno/v1"
	kyvernov2 "github.com/kyverno/kyverno/api/kyverno/v2"
	"github.com/kyverno/kyverno/ext/wildcard"
	"github.com/kyverno/kyverno/pkg/autogen"
	"github.com/kyverno/kyverno/pkg/config"
	"github.com/kyverno/kyverno/pkg/engine"
	engineapi "github.com/kyverno/kyverno/pkg/engine/api"
	"github.com/kyverno/kyverno/pkg/engine/jmespath"
	"github.com/kyverno/kyverno/pkg/engine/policycontext"
	engineutils "github.com/kyverno/kyverno/pkg/engine/utils"
	"github.com/kyverno/kyverno/pkg/exceptions"
	imageverifycache "github.com/kyverno/kyverno/pkg/image/verification/cache"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/policy/rule"
)

// classic is a ClusterPolicy or Policy.
type classic struct {
	policy   kyvernov1.PolicyInterface
	engine   engineapi.Engine
	config   config.Configuration
	jmespath jmespath.Interface
	severity string
	on       policy.Answer // of the annotation, "" where there is none
	scored   bool
	judges   bool // it has a rule that says yes or no
	rules    []computed
	unjudged []string // what its other rules do
}

// computed is a rule of the policy, or one that Kyverno derives from it.
type computed struct {
	rule kyvernov1.Rule
	// wider is the rule without what it asks of the object's namespace, nil where it asks
	// nothing. (What a rule asks of the user, Kyverno leaves out where nobody is known.)
	wider *kyvernov1.Rule
}

func newClassic(p kyvernov1.PolicyInterface, polex []*kyvernov2.PolicyException) (*classic, error) {
	if err := invalid(p); err != nil {
		return nil, err
	}
	on, err := answerOf(p.GetAnnotations())
	if err != nil {
		return nil, err
	}
	cfg := config.NewDefaultConfiguration(false)
	isCluster := false
	c := &classic{
		policy: p, config: cfg, jmespath: jmespath.New(cfg), on: on,
		severity: severity(p.GetAnnotations()), scored: scored(p.GetAnnotations()),
	}
	c.engine = engine.NewEngine(cfg, c.jmespath, nil, nil, imageverifycache.DisabledImageVerifyCache(), contexts, exceptions.New(lister(polex)), &isCluster)
	for _, r := range autogen.Default.ComputeRules(p, "") {
		for what, has := range map[string]bool{"mutate": r.HasMutate(), "generate": r.HasGenerate()} {
			if has && !slices.Contains(c.unjudged, what) {
				c.unjudged = append(c.unjudged, what)
			}
		}
		if !r.HasValidate() && !r.HasVerifyImages() {
			continue
		}
		c.judges = true
		c.rules = append(c.rules, computed{rule: r, wider: widen(r)})
	}
	slices.Sort(c.unjudged)
	return c, nil
}

// widen leaves out of what a rule matches the labels of namespaces.
func widen(r kyvernov1.Rule) *kyvernov1.Rule {
	out := r.DeepCopy()
	changed := false
	description := func(d *kyvernov1.ResourceDescription) {
		if d.NamespaceSelector != nil {
			d.NamespaceSelector, changed = nil, true
		}
	}
	m := &out.MatchResources
	description(&m.ResourceDescription)
	for _, filters := range []kyvernov1.ResourceFilters{m.Any, m.All} {
		for i := range filters {
			description(&filters[i].ResourceDescription)
		}
	}
	if !changed {
		return nil
	}
	return out
}

// lister serves the exceptions of the file.
type lister []*kyvernov2.PolicyException

func (l lister) List(selector labels.Selector) ([]*kyvernov2.PolicyException, error) {
	var out []*kyvernov2.PolicyException
	for _, e := range l {
		if selector.Matches(labels.Set(e.GetLabels())) {
			out = append(out, e)
		}
	}
	return out, nil
}

func (c *classic) judge(ctx context.Context, d *rule.Document) []policy.Verdict {
	if !c.judges {
		return []policy.Verdict{skip("its rules only " + strings.Join(c.unjudged, " and ") + ", and are not applied here")}
	}
	if d.Form != policy.FormObject {
		return []policy.Verdict{skip(notObject)}
	}
	r := newResource(d)
	pc, err := c.context(r)
	if err != nil {
		return errorOf(err)
	}
	var out []policy.Verdict
	answered := map[string]bool{}
	for _, result := range c.engine.Validate(ctx, pc).PolicyResponse.Rules {
		if result.RuleType() != engineapi.Validation {
			continue // images, below
		}
		answered[result.Name()] = true
		v := verdictOf(result, c.answer(result.Name(), r))
		v.Rule, v.Severity = result.Name(), c.severity
		out = append(out, v)
	}
	out = append(out, c.unknown(r, answered)...)
	if len(out) == 0 {
		return []policy.Verdict{skip("the policy does not match")}
	}
	return out
}

// context is the object as rules see it.
func (c *classic) context(r *resource) (*policycontext.PolicyContext, error) {
	operation := kyvernov1.AdmissionOperation(r.operation())
	pc, err := engine.NewPolicyContext(c.jmespath, *r.object, operation, nil, c.config)
	if err != nil {
		return nil, err
	}
	if operation == kyvernov1.Update && r.old != nil {
		pc = pc.WithOldResource(*r.old)
		if err := pc.JSONContext().AddOldResource(r.old.Object); err != nil {
			return nil, err
		}
	}
	if operation == kyvernov1.Delete {
		pc = pc.WithNewResource(unstructured.Unstructured{}).WithOldResource(*r.object)
	}
	return pc.WithPolicy(c.policy).WithNamespaceLabels(r.labels()).WithResourceKind(r.kind, ""), nil
}

// labels are those of the object's namespace, as far as they are known.
func (r *resource) labels() map[string]string {
	if ns := r.namespace(); ns != "" {
		return r.namespaceObject(ns).Labels
	}
	return nil
}

// unknown gives the verdicts of rules that could not be asked: they verify images, or they
// would match with what is not known.
func (c *classic) unknown(r *resource, answered map[string]bool) []policy.Verdict {
	var out []policy.Verdict
	for _, computed := range c.rules {
		message := ""
		switch {
		case answered[computed.rule.Name]:
		case computed.rule.HasVerifyImages() && (c.matches(r, &computed.rule) || computed.wider != nil && c.matches(r, computed.wider)):
			message = absent("verifyImages").Error()
		case computed.wider != nil && !r.labelsKnown() && c.matches(r, computed.wider):
			message = "the rule asks for the namespace of the object, and the labels of " + r.namespace() + " are not known"
		}
		if message != "" {
			out = append(out, policy.Verdict{Rule: computed.rule.Name, Result: policy.Unknown, Severity: c.severity, Message: message})
		}
	}
	return out
}

func (c *classic) matches(r *resource, rule *kyvernov1.Rule) bool {
	return engineutils.MatchesResourceDescription(*r.object, *rule, kyvernov2.RequestInfo{}, r.labels(), c.policy.GetNamespace(),
		r.kind, "", kyvernov1.AdmissionOperation(r.operation())) == nil
}

// answer is what a failure of a rule means.
func (c *classic) answer(name string, r *resource) policy.Answer {
	if c.on != "" {
		return c.on
	}
	spec := c.policy.GetSpec()
	action, overrides := spec.ValidationFailureAction, spec.ValidationFailureActionOverrides
	for _, computed := range c.rules {
		if v := computed.rule.Validation; computed.rule.Name == name && v != nil {
			if v.FailureAction != nil {
				action = *v.FailureAction
			}
			overrides = slices.Concat(v.FailureActionOverrides, overrides)
		}
	}
	for _, o := range overrides {
		if c.overrides(o, r) {
			action = o.Action
			break
		}
	}
	if action.Enforce() && c.scored {
		return policy.Deny
	}
	return policy.Warn
}

// overrides says whether an override is for the object's namespace.
func (c *classic) overrides(o kyvernov1.ValidationFailureActionOverride, r *resource) bool {
	named := slices.ContainsFunc(o.Namespaces, func(pattern string) bool { return wildcard.Match(pattern, r.namespace()) })
	if len(o.Namespaces) > 0 && !named {
		return false
	}
	if o.NamespaceSelector == nil {
		return named
	}
	selector, err := metav1.LabelSelectorAsSelector(o.NamespaceSelector)
	return err == nil && selector.Matches(labels.Set(r.labels()))
}
