package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/kube"
	"github.com/berth-dev/berth/runner/engine/kubetest"
)

// A chart that brings the kind of one of its objects is planned before the kind
// is there, and its objects are compared like all others.
func TestHelmChartWithACRD(t *testing.T) {
	t.Parallel()
	c := chart(t, nil)
	group := c.namespace + ".example.test"
	c.chart["crds/thing.yaml"] = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.` + group + `}
spec:
  group: ` + group + `
  scope: Namespaced
  names: {kind: Thing, plural: things, singular: thing}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`
	c.chart["templates/thing.yaml"] = `{{ if .Capabilities.APIVersions.Has "` + group + `/v1/Thing" }}
apiVersion: ` + group + `/v1
kind: Thing
metadata: {name: it}
spec: {value: {{ .Values.value }}}
{{ end }}`
	c.spec.StorageDriver = "configmap"
	crd := kube.Ref{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Name: "things." + group}
	crds := c.Dynamic.Resource(schema.GroupVersionResource{Group: crd.Group, Version: "v1", Resource: "customresourcedefinitions"})
	t.Cleanup(func() { _ = crds.Delete(context.WithoutCancel(t.Context()), crd.Name, metav1.DeleteOptions{}) })

	plan, _ := c.plan(t)
	got := strings.Join(c.summary(t, plan), "\n")
	wantContains(t, "summary", got, "create CustomResourceDefinition.apiextensions.k8s.io things.")
	wantContains(t, "summary", got, "create Thing.NS.example.test NS/it")
	c.applyJob(t, plan).must(t)

	thing := kube.Ref{Group: group, Version: "v1", Kind: "Thing", Namespace: c.namespace, Name: "it"}
	c.Forget()
	things, err := c.Resource(thing.GVK(), c.namespace)
	if err != nil {
		t.Fatal(err)
	}
	edited, err := things.Get(t.Context(), "it", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(edited.Object, "by hand", "spec", "value"); err != nil {
		t.Fatal(err)
	}
	if _, err := things.Update(t.Context(), edited, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	plan, _ = c.plan(t)
	wantContains(t, "summary", strings.Join(c.summary(t, plan), "\n"), `spec.value: "by hand" -> "one"`)
	c.applyJob(t, plan).must(t)
	if diff := cmp.Diff([]release.Status{release.StatusSuperseded, release.StatusDeployed}, c.history(t)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}

	// The CRD stays with Helm; a release is removed also when its kind is gone.
	if err := crds.Delete(t.Context(), crd.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the end of the CRD", func() bool {
		found, err := c.Get(t.Context(), crd)
		return err == nil && found == nil
	})
	plan, _ = c.planDestroy(t)
	c.applyJob(t, plan).must(t)
	if c.get(t, "Namespace/"+c.namespace) != nil {
		t.Error("the namespace is still there")
	}
}

// Helm leaves CRDs that are there as they are, and a plan says which differ; those
// of a component that upgrades them are changes of its plan.
func TestHelmCRDUpgrade(t *testing.T) {
	t.Parallel()
	c := chart(t, map[string]string{"templates/one.yaml": oneMap})
	group := c.namespace + ".example.test"
	crd := func(description string) string {
		return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.` + group + `}
spec:
  group: ` + group + `
  scope: Namespaced
  names: {kind: Thing, plural: things, singular: thing}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, description: ` + description + `, x-kubernetes-preserve-unknown-fields: true}}
status: {conditions: [], storedVersions: []}
`
	}
	ref := kube.Ref{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Name: "things." + group}
	crds := c.Dynamic.Resource(schema.GroupVersionResource{Group: ref.Group, Version: "v1", Resource: "customresourcedefinitions"})
	t.Cleanup(func() { _ = crds.Delete(context.WithoutCancel(t.Context()), ref.Name, metav1.DeleteOptions{}) })
	is := func(want string) {
		t.Helper()
		live, err := c.Get(t.Context(), ref)
		if err != nil || live == nil {
			t.Fatalf("CRD: %v, %v", live, err)
		}
		data, err := live.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		wantContains(t, "CRD", string(data), `"description":"`+want+`"`)
	}
	c.chart["crds/thing.yaml"] = crd("first")

	c.spec.CRDs = jobspec.CRDsSkip
	plan, _ := c.plan(t)
	if got := strings.Join(c.summary(t, plan), "\n"); strings.Contains(got, "CustomResourceDefinition") {
		t.Errorf("skipped CRDs are planned:\n%s", got)
	}
	c.spec.CRDs = ""
	plan, _ = c.plan(t)
	c.applyJob(t, plan).must(t)
	is("first")

	c.chart["crds/thing.yaml"] = crd("second")
	plan, r := c.plan(t)
	if !r.NoChange {
		t.Error("a CRD that stays as it is is a change")
	}
	wantContains(t, "plan", plan.read(t, "out/plan.summary.json"), "which Helm leaves as they are: things."+group)

	c.spec.CRDs, c.spec.MaxHistory = jobspec.CRDsUpgrade, 1
	plan, _ = c.plan(t)
	got := strings.Join(c.summary(t, plan), "\n")
	wantContains(t, "summary", got, "update CustomResourceDefinition.apiextensions.k8s.io things.")
	wantContains(t, "summary", got, `"second"`)
	c.applyJob(t, plan).must(t)
	is("second")
	if _, r := c.plan(t); !r.NoChange {
		t.Error("upgraded CRDs are a change again")
	}
	c.values = map[string]string{"value": "two"}
	plan, _ = c.plan(t)
	c.applyJob(t, plan).must(t)
	if diff := cmp.Diff([]release.Status{release.StatusSuperseded, release.StatusDeployed}, c.history(t)); diff != "" {
		t.Errorf("history of at most one revision and the deployed one (-want +got):\n%s", diff)
	}

	// What somebody changed since the plan is not written over.
	c.chart["crds/thing.yaml"] = crd("third")
	plan, _ = c.plan(t)
	patch := []byte(`[{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema/description", "value": "by hand"}]`)
	if _, err := crds.Patch(t.Context(), ref.Name, types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if r := c.applyJob(t, plan).run(t); r.Outcome != jobspec.OutcomeStale {
		t.Errorf("apply over somebody's change is %s: %s", r.Outcome, r.Error)
	}
	is("by hand")
}

func TestHelmHealth(t *testing.T) {
	t.Parallel()
	c := chart(t, map[string]string{"templates/one.yaml": oneMap, "templates/gated.yaml": gated})
	probe := func() jobspec.Result { return c.job(t, jobspec.OperationRun).run(t) }
	if r := probe(); r.Outcome != jobspec.OutcomeFailed {
		t.Errorf("nothing is deployed, and its health is %s", r.Outcome)
	}
	plan, _ := c.plan(t)
	apply := c.applyJob(t, plan)
	cmd := startUntil(t, apply, "waiting for Pod/gated")
	r := probe()
	if r.Outcome != jobspec.OutcomeFailed {
		t.Errorf("a release that waits has health %s", r.Outcome)
	}
	wantContains(t, "error", r.Error, "/gated: ")
	c.open(t)
	if r := apply.finish(t, cmd); r.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("outcome %s: %s", r.Outcome, r.Error)
	}
	if r := probe(); r.Outcome != jobspec.OutcomeSucceeded {
		t.Errorf("health is %s: %s", r.Outcome, r.Error)
	}
}

// An apply that is outrun in its middle writes nothing more, and no record.
func TestHelmOutrun(t *testing.T) {
	t.Parallel()
	c := chart(t, map[string]string{"templates/one.yaml": oneMap})
	c.roll(t)
	c.values = map[string]string{"value": "two"}
	plan, _ := c.plan(t)
	slow := c.behind(t, func(w kubetest.Write) {
		if strings.HasSuffix(w.Path, "/secrets") { // the record of the revision, before all else
			c.edit(t, "ConfigMap/berth-helm-chart-web", `{"metadata":{"annotations":{"berth.dev/fence":"9"}}}`)
		}
	})
	r := slow.applyJob(t, plan).run(t)
	if r.Outcome != jobspec.OutcomeFailed || len(r.Differs) == 0 || r.Differs[0].Field != "fence" {
		t.Errorf("outcome %s: %s (%v)", r.Outcome, r.Error, r.Differs)
	}
	if got := c.data(t, "one"); got != `{"key":"one"}` {
		t.Errorf("it is %s", got)
	}
	// The order that is the newest goes on from there.
	c.fence = 9
	plan, _ = c.plan(t)
	c.applyJob(t, plan).must(t)
	if diff := cmp.Diff([]release.Status{release.StatusSuperseded, release.StatusFailed, release.StatusDeployed}, c.history(t)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

// workload is a template of a Deployment with a Service, with little of what the
// API server fills in.
const workload = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - {name: pause, image: ` + pauseImage + `, env: [{name: VALUE, value: {{ .Values.value | quote }}}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
`

// What the API server fills in is no change, a value is one field of one
// container, and what somebody else scales is a change only while it lasts.
func TestHelmWorkload(t *testing.T) {
	t.Parallel()
	c := chart(t, map[string]string{"templates/web.yaml": workload})
	_, apply := c.roll(t)
	wantContains(t, "log", apply.log(t), "Deployment/web is ready")
	var deployments []struct {
		Name  string
		Ready int `json:"ready_replicas"`
	}
	var r jobspec.Result
	apply.readJSON(t, "out/result.json", &r)
	if err := json.Unmarshal(r.Outputs["deployments"].Value, &deployments); err != nil {
		t.Fatal(err)
	}
	if len(deployments) != 1 || deployments[0].Name != "web" {
		t.Errorf("output deployments is %s", r.Outputs["deployments"].Value)
	}
	c.wantNoChange(t)

	c.values = map[string]string{"value": "two"}
	plan, _ := c.plan(t)
	want := []string{
		`update Deployment.apps NS/web spec.template.spec.containers[pause].env[VALUE].value: "one" -> "two"`, "upgrade Release NS/web",
	}
	if diff := cmp.Diff(want, c.summary(t, plan)); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	c.edit(t, "Deployment/web", `{"spec":{"replicas":2}}`)
	r = c.applyJob(t, plan).run(t)
	if r.Outcome != jobspec.OutcomeStale {
		t.Fatalf("outcome %s: %s", r.Outcome, r.Error)
	}
	if diff := cmp.Diff([]jobspec.Difference{{Field: "Deployment/web: spec.replicas", Want: "1", Got: "2"}}, r.Differs); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
	c.edit(t, "Deployment/web", `{"spec":{"replicas":1}}`)
	c.applyJob(t, plan).must(t)
	c.wantNoChange(t)
}
