package drift_test

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/runner/engine/kubetest"
)

const admission = `{"apiVersion":"admissionregistration.k8s.io/v1beta1","kind":"MutatingAdmissionPolicy","metadata":{"name":"NAME"},"spec":{
	"matchConstraints":{"resourceRules":[{"apiGroups":["apps",""],"apiVersions":["v1"],"operations":["CREATE","UPDATE"],"resources":["deployments","configmaps"]}],
		"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"NAME"}}},
	"failurePolicy":"Fail","reinvocationPolicy":"Never","mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":"TEXT"}}]}}`

const binding = `{"apiVersion":"admissionregistration.k8s.io/v1beta1","kind":"MutatingAdmissionPolicyBinding","metadata":{"name":"NAME"},"spec":{"policyName":"NAME"}}`

// admit makes a policy that changes what is written in a namespace, as a
// mutating webhook would, and waits until it is in force.
func admit(t *testing.T, c *kubetest.Connection, namespace, expression string) {
	t.Helper()
	for _, text := range []string{admission, binding} {
		obj := &unstructured.Unstructured{}
		text = strings.ReplaceAll(text, "NAME", namespace)
		if err := obj.UnmarshalJSON([]byte(strings.ReplaceAll(text, "TEXT", strings.ReplaceAll(expression, `"`, `\"`)))); err != nil {
			t.Fatal(err)
		}
		resource, err := c.Resource(obj.GroupVersionKind(), "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := resource.Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = resource.Delete(context.WithoutCancel(t.Context()), namespace, metav1.DeleteOptions{})
		})
	}
	probe := &unstructured.Unstructured{}
	if err := probe.UnmarshalJSON([]byte(deployed["web"])); err != nil {
		t.Fatal(err)
	}
	probe.SetNamespace(namespace)
	before := len(trial(t, c, probe, "nobody"))
	for end := time.Now().Add(30 * time.Second); len(trial(t, c, probe, "nobody")) == before; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the policy is not in force")
		}
	}
}

// trial is what a dry run of a create gives, without what differs each time.
func trial(t *testing.T, c *kubetest.Connection, obj *unstructured.Unstructured, manager string) string {
	t.Helper()
	data, err := obj.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	resource := c.Dynamic.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace(obj.GetNamespace())
	out, err := resource.Patch(t.Context(), obj.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: manager, DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	unstructured.RemoveNestedField(out.Object, "metadata")
	text, err := out.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
