// Package kyverno judges documents by Kyverno's policies: ClusterPolicy and Policy, whose
// rules validate, and ValidatingPolicy, of Kubernetes objects or, with evaluation.mode JSON,
// of anything else. Exceptions count for the policies of the file that they stand in.
//
// There is no cluster, no registry and no network here. A rule that asks for one gives the
// verdict unknown, and says what it asked for.
package kyverno

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5/memfs"
	"github.com/go-git/go-billy/v5/util"
	"github.com/go-logr/logr"
	policieskyvernoio "github.com/kyverno/api/api/policies.kyverno.io"
	policiesv1beta1 "github.com/kyverno/api/api/policies.kyverno.io/v1beta1"
	kyvernov1 "github.com/kyverno/kyverno/api/kyverno/v1"
	clipolicy "github.com/kyverno/kyverno/cmd/cli/kubectl-kyverno/policy"
	"github.com/kyverno/kyverno/pkg/cel/libs"
	vpolcompiler "github.com/kyverno/kyverno/pkg/cel/policies/vpol/compiler"
	vpolengine "github.com/kyverno/kyverno/pkg/cel/policies/vpol/engine"
	"github.com/kyverno/kyverno/pkg/config"
	"github.com/kyverno/kyverno/pkg/toggle"
	policyvalidation "github.com/kyverno/kyverno/pkg/validation/policy"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	controllerruntime "sigs.k8s.io/controller-runtime"

	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/policy/rule"
)

// AnswerAnnotation says on a policy what its failures mean, over what Kyverno would do.
const AnswerAnnotation = "berth.dev/answer"

// set is the policies of one file.
type set struct {
	classic    []*classic    // ClusterPolicy and Policy
	validating []*validating // ValidatingPolicy
	images     []policiesv1beta1.ImageValidatingPolicyLike
	idle       []idle
	many       bool // more than one policy: rules carry its name
}

// idle is a policy that says neither yes nor no here.
type idle struct{ name, kind string }

// quiet keeps Kyverno off the network, and its libraries from logging. It is the state of the
// whole process.
var quiet = sync.OnceValue(func() error {
	klog.SetLogger(logr.Discard())
	controllerruntime.SetLogger(logr.Discard())
	libs.LibraryContext = nothing{}
	return toggle.HTTPAllowlist.Parse("https://none.invalid")
})

// compiling guards what Kyverno keeps for the whole process while it compiles.
var compiling sync.Mutex

// Load reads and compiles the policies of a file. What is wrong with them is of type
// rule.Problems.
func Load(text string) (rule.Set, error) {
	if len(text) > rule.MaxText {
		return nil, rule.Problems{{Line: 1, Text: fmt.Sprintf("the file is longer than %d bytes", rule.MaxText)}}
	}
	if err := quiet(); err != nil {
		return nil, err
	}
	compiling.Lock()
	defer compiling.Unlock()
	var problems rule.Problems
	all := &clipolicy.LoaderResults{}
	var where []part // of each policy in all, by kind and name
	for _, p := range split(text) {
		found, err := load(p.text)
		if err != nil {
			problems = append(problems, p.problem(err))
			continue
		}
		p.names = names(found)
		where = append(where, p)
		merge(all, found)
	}
	s := &set{}
	line := func(name string) part {
		for _, p := range where {
			if slices.Contains(p.names, name) {
				return p
			}
		}
		return part{line: 1}
	}
	for _, p := range all.Policies {
		c, err := newClassic(p, all.PolicyExceptions)
		if err != nil {
			problems = append(problems, line(p.GetName()).problem(err))
			continue
		}
		s.classic = append(s.classic, c)
	}
	for _, p := range all.ValidatingPolicies {
		v, err := newValidating(p, all.PolicyCELExceptions)
		if err != nil {
			problems = append(problems, line(p.GetName()).problem(err))
			continue
		}
		s.validating = append(s.validating, v)
	}
	s.images = all.ImageValidatingPolicies
	s.idle = idles(all)
	count := len(s.classic) + len(s.validating) + len(s.images) + len(s.idle)
	s.many = count > 1
	if count == 0 && len(problems) == 0 {
		problems = rule.Problems{{Line: 1, Text: "there is no policy in the file"}}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return s, nil
}

// load reads one document, from a file system in memory: the loader knows no other way.
func load(text string) (*clipolicy.LoaderResults, error) {
	const name = "policy.yaml"
	fs := memfs.New()
	if err := util.WriteFile(fs, name, []byte(text), 0o600); err != nil {
		return nil, err
	}
	found, err := clipolicy.Load(fs, "", name)
	if err != nil {
		return nil, err
	}
	if len(found.NonFatalErrors) > 0 {
		return nil, found.NonFatalErrors[0].Error
	}
	return found, nil
}

func merge(to, from *clipolicy.LoaderResults) {
	to.Policies = append(to.Policies, from.Policies...)
	to.PolicyExceptions = append(to.PolicyExceptions, from.PolicyExceptions...)
	to.PolicyCELExceptions = append(to.PolicyCELExceptions, from.PolicyCELExceptions...)
	to.PolicyCELExceptions = append(to.PolicyCELExceptions, from.PolicyCelExceptions...)
	to.ValidatingPolicies = append(to.ValidatingPolicies, from.ValidatingPolicies...)
	to.EnvoyPolicies = append(to.EnvoyPolicies, from.EnvoyPolicies...)
	to.HTTPPolicies = append(to.HTTPPolicies, from.HTTPPolicies...)
	to.ImageValidatingPolicies = append(to.ImageValidatingPolicies, from.ImageValidatingPolicies...)
	to.GeneratingPolicies = append(to.GeneratingPolicies, from.GeneratingPolicies...)
	to.DeletingPolicies = append(to.DeletingPolicies, from.DeletingPolicies...)
	to.CleanupPolicies = append(to.CleanupPolicies, from.CleanupPolicies...)
	to.MutatingPolicies = append(to.MutatingPolicies, from.MutatingPolicies...)
	to.VAPs = append(to.VAPs, from.VAPs...)
	to.MAPs = append(to.MAPs, from.MAPs...)
}

// names are those of the policies that one document holds: more than one in a List.
func names(l *clipolicy.LoaderResults) []string {
	var out []string
	for _, p := range l.Policies {
		out = append(out, p.GetName())
	}
	for _, p := range l.ValidatingPolicies {
		out = append(out, p.GetName())
	}
	return out
}

// idles are the policies of kinds that are not judged here.
func idles(l *clipolicy.LoaderResults) []idle {
	var out []idle
	for _, p := range l.MutatingPolicies {
		out = append(out, idle{p.GetName(), p.GetKind()})
	}
	for _, p := range l.GeneratingPolicies {
		out = append(out, idle{p.GetName(), p.GetKind()})
	}
	for _, p := range l.DeletingPolicies {
		out = append(out, idle{p.GetName(), p.GetKind()})
	}
	for _, p := range l.CleanupPolicies {
		out = append(out, idle{p.GetName(), "CleanupPolicy"})
	}
	for _, p := range l.MAPs {
		out = append(out, idle{p.GetName(), "MutatingAdmissionPolicy"})
	}
	for _, p := range l.VAPs {
		out = append(out, idle{p.GetName(), "ValidatingAdmissionPolicy"})
	}
	for _, p := range slices.Concat(l.EnvoyPolicies, l.HTTPPolicies) {
		out = append(out, idle{p.GetName(), "ValidatingPolicy in mode " + p.Spec.EvaluationMode()})
	}
	return out
}

// answerOf reads the annotation; "" where there is none.
func answerOf(annotations map[string]string) (policy.Answer, error) {
	text, set := annotations[AnswerAnnotation]
	answer := policy.Answer(text)
	if set && (!answer.Valid() || answer == policy.Allow) {
		return "", fmt.Errorf("metadata.annotations: %s is %q, not deny, ask or warn", AnswerAnnotation, text)
	}
	return answer, nil
}

// validating is a ValidatingPolicy with what Kyverno generates from it.
type validating struct {
	name, severity string
	policy         policiesv1beta1.ValidatingPolicyLike
	compiled       vpolengine.ProviderFunc
	json           bool
	on             policy.Answer
	validations    int
	// Where the labels of the object's namespace, or who applies it, are not known, a
	// policy that does not match says nothing.
	namespaces, users bool
}

func newValidating(p policiesv1beta1.ValidatingPolicyLike, exceptions []*policiesv1beta1.PolicyException) (*validating, error) {
	spec := p.GetValidatingPolicySpec()
	v := &validating{
		name: p.GetName(), policy: p, severity: severity(p.GetAnnotations()), validations: len(spec.Validations),
		json: spec.EvaluationMode() == policieskyvernoio.EvaluationModeJSON,
	}
	// A condition that fails is an error: it must not make the policy step aside.
	spec.FailurePolicy = ptr.To(admissionregistrationv1.Fail)
	var err error
	if v.on, err = answerOf(p.GetAnnotations()); err != nil {
		return nil, err
	}
	if v.on == "" {
		v.on = policy.Warn
		if slices.Contains(spec.ValidationActions(), admissionregistrationv1.Deny) && scored(p.GetAnnotations()) {
			v.on = policy.Deny
		}
	}
	if m := spec.MatchConstraints; m != nil && m.NamespaceSelector != nil {
		v.namespaces = len(m.NamespaceSelector.MatchLabels)+len(m.NamespaceSelector.MatchExpressions) > 0
	}
	expressions := expressionsOf(spec)
	v.namespaces = v.namespaces || strings.Contains(expressions, "namespaceObject")
	v.users = strings.Contains(expressions, "userInfo")
	if v.compiled, err = vpolengine.NewProvider(vpolcompiler.NewCompiler(), []policiesv1beta1.ValidatingPolicyLike{p}, exceptions); err != nil {
		return nil, err
	}
	return v, nil
}

// expressionsOf is all CEL of a policy.
func expressionsOf(spec *policiesv1beta1.ValidatingPolicySpec) string {
	var b strings.Builder
	for _, c := range spec.MatchConditions {
		b.WriteString(c.Expression + "\n")
	}
	for _, v := range spec.Variables {
		b.WriteString(v.Expression + "\n")
	}
	for _, v := range spec.Validations {
		b.WriteString(v.Expression + "\n")
	}
	return b.String()
}

// scored: a failure counts (policy-report format).
func scored(annotations map[string]string) bool {
	return annotations["policies.kyverno.io/scored"] != "false"
}

func severity(annotations map[string]string) string {
	s := annotations["policies.kyverno.io/severity"]
	if slices.Contains([]string{"critical", "high", "medium", "low", "info"}, s) {
		return s
	}
	return ""
}

// invalid says what Kyverno itself refuses in a classic policy.
func invalid(p kyvernov1.PolicyInterface) error {
	user := config.KyvernoUserName(config.KyvernoServiceAccountName())
	_, err := policyvalidation.Validate(p, nil, nil, true, user, user)
	return err
}
