package kyverno

import (
	"context"
	"fmt"
	"slices"
	"sync"

	policiesv1beta1 "github.com/kyverno/api/api/policies.kyverno.io/v1beta1"
	"github.com/kyverno/kyverno/cmd/cli/kubectl-kyverno/data"
	"github.com/kyverno/kyverno/pkg/admissionpolicy"
	celengine "github.com/kyverno/kyverno/pkg/cel/engine"
	"github.com/kyverno/kyverno/pkg/cel/matching"
	vpolengine "github.com/kyverno/kyverno/pkg/cel/policies/vpol/engine"
	engineapi "github.com/kyverno/kyverno/pkg/engine/api"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/restmapper"

	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/policy/rule"
)

// notObject is said of documents that only rules in JSON mode look at.
const notObject = "the policy looks at Kubernetes objects, and this is none"

// Judge asks all policies of the file about one document.
func (s *set) Judge(ctx context.Context, d *rule.Document) []policy.Verdict {
	var out []policy.Verdict
	add := func(name string, verdicts ...policy.Verdict) {
		for _, v := range verdicts {
			if s.many && v.Rule != "" {
				v.Rule = name + "/" + v.Rule
			} else if s.many {
				v.Rule = name
			}
			out = append(out, v)
		}
	}
	for _, c := range s.classic {
		add(c.policy.GetName(), c.judge(ctx, d)...)
	}
	for _, v := range s.validating {
		add(v.name, v.judge(ctx, d)...)
	}
	for _, p := range s.images {
		add(p.GetName(), image(p, d))
	}
	for _, i := range s.idle {
		add(i.name, i.verdict())
	}
	return out
}

// verdict of a kind that is not judged. One that would say no where there is a cluster is
// unknown; one that only changes or makes objects is left out.
func (i idle) verdict() policy.Verdict {
	switch i.kind {
	case "ValidatingAdmissionPolicy":
		return policy.Verdict{Result: policy.Unknown, Message: i.kind + " is not judged here: write it as ValidatingPolicy"}
	case "ValidatingPolicy in mode Envoy", "ValidatingPolicy in mode HTTP":
		return skip(i.kind + " looks at requests, not at documents")
	}
	return skip(i.kind + " says neither yes nor no, and is not applied here")
}

func skip(message string) policy.Verdict {
	return policy.Verdict{Result: policy.Skip, Message: message}
}

// judge asks a ValidatingPolicy.
func (v *validating) judge(ctx context.Context, d *rule.Document) []policy.Verdict {
	if v.json == (d.Form == policy.FormObject) {
		if v.json {
			return []policy.Verdict{skip("the policy is in JSON mode, and this is a Kubernetes object")}
		}
		return []policy.Verdict{skip(notObject)}
	}
	var responses celengine.EngineResponse
	var err error
	r := newResource(d)
	if v.json {
		responses, err = vpolengine.NewEngine(v.compiled, nil, nil).Handle(ctx, celengine.RequestFromJSON(nothing{}, &unstructured.Unstructured{Object: d.Body}), nil)
	} else {
		responses, err = vpolengine.NewEngine(v.compiled, r.namespaceObject, matching.NewMatcher()).Handle(ctx, r.request(), nil)
	}
	if err != nil {
		return []policy.Verdict{v.doubt(err.Error())}
	}
	var out []policy.Verdict
	for _, p := range responses.Policies {
		for _, rule := range p.Rules {
			out = append(out, v.verdict(rule))
		}
	}
	matched := slices.ContainsFunc(out, func(v policy.Verdict) bool { return v.Result != policy.Skip })
	switch {
	case v.namespaces && !v.json && !r.labelsKnown() && !refused(out):
		return []policy.Verdict{{Result: policy.Unknown, Severity: v.severity, Message: "the policy asks for the namespace of the object, and the labels of " + r.namespace() + " are not known"}}
	case v.users && !refused(out):
		return []policy.Verdict{{Result: policy.Unknown, Severity: v.severity, Message: "the policy asks who applies the object, and that is not known here"}}
	case len(out) == 0 || !matched && len(out) > 1:
		return []policy.Verdict{skip("the policy does not match")}
	}
	return out
}

// refused: it is no anyway, whatever is not known.
func refused(verdicts []policy.Verdict) bool {
	return slices.ContainsFunc(verdicts, func(v policy.Verdict) bool { return v.Result == policy.Fail || v.Result == policy.Warning })
}

func (v *validating) verdict(r engineapi.RuleResponse) policy.Verdict {
	out := verdictOf(r, v.on)
	out.Severity = v.severity
	if index, known := r.Properties()["cel.validationIndex"]; known && v.validations > 1 && out.Result != policy.Pass {
		out.Rule = "validations[" + index + "]"
	}
	return out
}

func (v *validating) doubt(message string) policy.Verdict {
	out := doubt(message)
	out.Severity = v.severity
	return out
}

// doubt is what an error means: that the rule is wrong, or that it asked for what is not here.
func doubt(message string) policy.Verdict {
	if asksOutside(message) {
		return policy.Verdict{Result: policy.Unknown, Message: message}
	}
	return policy.Verdict{Result: policy.Error, Message: message}
}

// verdictOf is what Kyverno says of one rule.
func verdictOf(r engineapi.RuleResponse, on policy.Answer) policy.Verdict {
	message := r.Message()
	switch r.Status() {
	case engineapi.RuleStatusPass:
		return policy.Verdict{Result: policy.Pass}
	case engineapi.RuleStatusSkip:
		return skip(message)
	case engineapi.RuleStatusFail, engineapi.RuleStatusWarn:
		if on == policy.Warn {
			return policy.Verdict{Result: policy.Warning, On: on, Message: message}
		}
		return policy.Verdict{Result: policy.Fail, On: on, Message: message}
	}
	return doubt(message)
}

// image says what an ImageValidatingPolicy would be asked: it looks into registries.
func image(p policiesv1beta1.ImageValidatingPolicyLike, d *rule.Document) policy.Verdict {
	if d.Form != policy.FormObject {
		return skip(notObject)
	}
	r := newResource(d)
	for _, attributes := range r.asPodToo() {
		matches, err := matching.NewMatcher().Match(&matching.MatchCriteria{Constraints: constraints(p)}, attributes, r.namespaceOrEmpty())
		if err != nil || matches {
			return policy.Verdict{Result: policy.Unknown, Message: absent("ImageValidatingPolicy, which verifies images in their registry").Error()}
		}
	}
	return skip("the policy does not match")
}

func constraints(p policiesv1beta1.ImageValidatingPolicyLike) *admissionregistrationv1.MatchResources {
	if m := p.GetMatchConstraints(); len(m.ResourceRules) > 0 {
		return &m
	}
	return &admissionregistrationv1.MatchResources{}
}

// resource is a document as a Kubernetes object.
type resource struct {
	d           *rule.Document
	new, old    *unstructured.Unstructured // nil where there is none
	object      *unstructured.Unstructured
	kind        schema.GroupVersionKind
	resourceOf  schema.GroupVersionResource
	clusterWide bool
}

// mapper knows the resources of the kinds that Kubernetes itself has.
var mapper = sync.OnceValues(func() (meta.RESTMapper, error) {
	groups, err := data.APIGroupResources()
	if err != nil {
		return nil, err
	}
	return restmapper.NewDiscoveryRESTMapper(groups), nil
})

func newResource(d *rule.Document) *resource {
	r := &resource{d: d}
	if d.Body != nil && d.Operation != policy.Delete {
		r.new = &unstructured.Unstructured{Object: d.Body}
	}
	if d.Old != nil && d.Operation != policy.Create {
		r.old = &unstructured.Unstructured{Object: d.Old}
	}
	if d.Operation == policy.Delete && r.old == nil && d.Body != nil {
		r.old = &unstructured.Unstructured{Object: d.Body}
	}
	if r.object = r.new; r.object == nil {
		r.object = r.old
	}
	if r.object == nil {
		r.object = &unstructured.Unstructured{Object: map[string]any{}}
	}
	r.kind = r.object.GroupVersionKind()
	r.resourceOf, _ = meta.UnsafeGuessKindToResource(r.kind)
	if m, err := mapper(); err == nil {
		if mapping, err := m.RESTMapping(r.kind.GroupKind(), r.kind.Version); err == nil {
			r.resourceOf = mapping.Resource
			r.clusterWide = mapping.Scope.Name() == meta.RESTScopeNameRoot
		}
	}
	return r
}

func (r *resource) namespace() string { return r.object.GetNamespace() }

func (r *resource) operation() admissionv1.Operation {
	switch r.d.Operation {
	case policy.Update:
		return admissionv1.Update
	case policy.Delete:
		return admissionv1.Delete
	}
	return admissionv1.Create
}

// labelsKnown: what a rule can ask about the object's namespace is known.
func (r *resource) labelsKnown() bool {
	ns := r.namespace()
	_, known := r.d.Namespaces[ns]
	return known || ns == "" || r.clusterWide
}

// namespaceObject is what Kyverno is told of a namespace.
func (r *resource) namespaceObject(name string) *corev1.Namespace {
	labels := map[string]string{"kubernetes.io/metadata.name": name}
	for k, v := range r.d.Namespaces[name] {
		labels[k] = v
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func (r *resource) namespaceOrEmpty() runtime.Object {
	if ns := r.namespace(); ns != "" {
		return r.namespaceObject(ns)
	}
	return nil
}

func (r *resource) request() celengine.EngineRequest {
	return celengine.Request(nothing{}, r.kind, r.resourceOf, "", r.object.GetName(), r.namespace(), r.operation(),
		authenticationv1.UserInfo{}, objectOf(r.new), objectOf(r.old), false, nil)
}

// objectOf keeps nil nil: an interface that holds no object is not.
func objectOf(u *unstructured.Unstructured) runtime.Object {
	if u == nil {
		return nil
	}
	return u
}

// controllers have a template of pods, for which Kyverno applies rules of pods too.
var controllers = []string{"CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"}

// asPodToo is the object as a matcher sees it, and, of what makes pods, such a pod.
func (r *resource) asPodToo() []admission.Attributes {
	all := []admission.Attributes{r.attributes(r.kind, r.resourceOf)}
	if slices.Contains(controllers, r.kind.Kind) {
		all = append(all, r.attributes(corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithResource("pods")))
	}
	return all
}

func (r *resource) attributes(kind schema.GroupVersionKind, of schema.GroupVersionResource) admission.Attributes {
	return admission.NewAttributesRecord(objectOf(r.new), objectOf(r.old), kind, r.namespace(), r.object.GetName(), of, "",
		admission.Operation(r.operation()), nil, false, admissionpolicy.NewUser(authenticationv1.UserInfo{}))
}

// errorOf is a verdict of an evaluation that did not take place.
func errorOf(err error) []policy.Verdict {
	return []policy.Verdict{doubt(fmt.Sprint(err))}
}
