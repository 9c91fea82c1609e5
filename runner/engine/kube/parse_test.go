package kube_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/runner/engine/kube"
)

func TestParseObjects(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text string
		want       []string
		wrong      string
	}{
		{name: "nothing", text: "# only a comment\n---\n\n"},
		{name: "two documents", text: "apiVersion: v1\nkind: A\nmetadata: {name: x}\n---\napiVersion: g/v1\nkind: B\nmetadata: {name: z, namespace: m}\n", want: []string{"A x", "B.g m/z"}},
		{name: "a list", text: "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: A, metadata: {name: x}}]}", want: []string{"A x"}},
		{name: "JSON", text: `{"apiVersion":"v1","kind":"A","metadata":{"name":"x"}}`, want: []string{"A x"}},
		{name: "a key twice", text: "apiVersion: v1\nkind: A\nkind: B\nmetadata: {name: x}\n", wrong: "document 1"},
		{name: "no kind", text: "---\napiVersion: v1\nmetadata: {name: x}\n", wrong: "document 1"},
		{name: "no name", text: "{apiVersion: v1, kind: A}", wrong: "there is no metadata.name"},
		{name: "a made up name", text: "{apiVersion: v1, kind: A, metadata: {generateName: x-}}", wrong: "another object each time"},
		{name: "no object", text: "- 1\n- 2\n", wrong: "it is no object"},
		{name: "no YAML", text: "a: b: c", wrong: "document 1"},
		{name: "no apiVersion in a list", text: "{apiVersion: v1, kind: List, items: [{kind: A, metadata: {name: x}}]}", wrong: "item 1: there is no apiVersion"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			objects, err := kube.ParseObjects(tc.text)
			if tc.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wrong) {
					t.Fatalf("error is %v, want one with %q", err, tc.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range objects {
				got = append(got, kube.RefOf(o).Address())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	objects, err := kube.ParseObjects(`
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: hook}}
---
{apiVersion: shop.io/v1, kind: Basket, metadata: {name: b, namespace: shop}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: z, namespace: shop}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: baskets.shop.io}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
`)
	if err != nil {
		t.Fatal(err)
	}
	kube.SortForInstall(objects)
	var install []string
	var refs []kube.Ref
	for _, o := range objects {
		install = append(install, kube.RefOf(o).String())
		refs = append(refs, kube.RefOf(o))
	}
	want := []string{
		"Namespace/shop", "CustomResourceDefinition/baskets.shop.io", "ConfigMap/z", "ConfigMap/a",
		"Deployment/web", "Basket/b", "ValidatingWebhookConfiguration/hook",
	}
	if diff := cmp.Diff(want, install); diff != "" {
		t.Errorf("install (-want +got):\n%s", diff)
	}
	kube.SortForDelete(refs)
	var remove []string
	for _, r := range refs {
		remove = append(remove, r.String())
	}
	want = []string{
		"ValidatingWebhookConfiguration/hook", "Basket/b", "Deployment/web", "ConfigMap/a", "ConfigMap/z",
		"CustomResourceDefinition/baskets.shop.io", "Namespace/shop",
	}
	if diff := cmp.Diff(want, remove); diff != "" {
		t.Errorf("delete (-want +got):\n%s", diff)
	}
}
