package engine_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// webDeployment runs nothing: readiness is the business of other tests.
const webDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "{{ .nuon.inputs.inputs.image }}"}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
---
`

func withImage(image string) map[string]any {
	return map[string]any{"inputs": map[string]any{"inputs": map[string]any{"image": image}}}
}

func TestManifestFromFirstDeployToTeardown(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	d.state = withImage("example.test/web:1")
	first := configMap("settings", "one") + configMap("extra", "x") + configMap("precious", "p", "berth.dev/prune: never") + webDeployment

	// The namespace does not exist, so nothing can be tried on the server.
	plan, result := d.plan(t, first)
	if result.NoChange {
		t.Error("a first plan says that it changes nothing")
	}
	want := []string{"create Namespace NS", "create ConfigMap NS/settings", "create ConfigMap NS/extra", "create ConfigMap NS/precious", "create Service NS/web", "create Deployment.apps NS/web"}
	if diff := cmp.Diff(want, d.summary(t, plan)); diff != "" {
		t.Errorf("summary of the first plan (-want +got):\n%s", diff)
	}
	if d.get(t, "Namespace/"+d.namespace) != nil {
		t.Fatal("a plan made the namespace")
	}
	applied := d.applyJob(t, plan).must(t)
	if got := d.data(t, "settings"); got != `{"key":"one"}` {
		t.Errorf("ConfigMap settings has %s", got)
	}
	for _, name := range []string{"resources", "services", "deployments", "ingresses"} {
		if len(applied.Outputs[name].Value) == 0 {
			t.Errorf("there is no output %s: %v", name, applied.Outputs)
		}
	}
	wantContains(t, "output services", string(applied.Outputs["services"].Value), `"cluster_ip":"1`)
	wantContains(t, "output deployments", string(applied.Outputs["deployments"].Value), "example.test/web:1")

	// Again: nothing to do, with the same outputs.
	_, result = d.plan(t, first)
	if !result.NoChange {
		t.Error("the same manifest is a change")
	}
	if diff := cmp.Diff(applied.Outputs, result.Outputs); diff != "" {
		t.Errorf("outputs of a plan without change (-apply +plan):\n%s", diff)
	}

	// One field of one object.
	d.state = withImage("example.test/web:2")
	plan, _ = d.plan(t, first)
	want = []string{`update Deployment.apps NS/web spec.template.spec.containers[web].image: "example.test/web:1" -> "example.test/web:2"`}
	if diff := cmp.Diff(want, d.summary(t, plan)); diff != "" {
		t.Errorf("summary of one field (-want +got):\n%s", diff)
	}
	d.applyJob(t, plan).must(t)

	// Objects leave the manifest: one goes, the protected one stays.
	plan, _ = d.plan(t, configMap("settings", "one")+webDeployment)
	want = []string{"delete ConfigMap NS/extra", "keep ConfigMap NS/precious (protected by its annotation berth.dev/prune=never)"}
	if diff := cmp.Diff(want, d.summary(t, plan)); diff != "" {
		t.Errorf("summary of a prune (-want +got):\n%s", diff)
	}
	d.applyJob(t, plan).must(t)
	if got := d.data(t, "extra") + d.data(t, "precious"); got != `absent{"key":"p"}` {
		t.Errorf("after the prune extra and precious are %s", got)
	}
	if _, result = d.plan(t, configMap("settings", "one")+webDeployment); !result.NoChange {
		t.Error("what is kept is a change each time")
	}

	// Without the protection a teardown leaves nothing.
	d.edit(t, "ConfigMap/precious", `{"metadata":{"annotations":{"berth.dev/prune":null}}}`)
	plan, _ = d.planDestroy(t)
	wantContains(t, "summary of the teardown", strings.Join(d.summary(t, plan), "\n"), "delete Namespace NS (made for this install, and this is the last component in it")
	d.applyJob(t, plan).must(t)
	if obj := d.get(t, "Namespace/"+d.namespace); obj != nil {
		t.Errorf("the namespace is still there: %v", obj.Object["status"])
	}
	if _, result = d.planDestroy(t); !result.NoChange {
		t.Error("a second teardown has something to do")
	}
}

func TestManifestTeardownKeepsWhatIsNotOurs(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	d.namespace = d.Namespace(t) // made by the customer
	d.roll(t, configMap("settings", "one")+configMap("precious", "p", "berth.dev/prune: never"))
	plan, _ := d.planDestroy(t)
	d.applyJob(t, plan).must(t)
	if got := d.data(t, "settings") + d.data(t, "precious"); got != `absent{"key":"p"}` {
		t.Errorf("after the teardown settings and precious are %s", got)
	}
	if ns := d.get(t, "Namespace/"+d.namespace); ns == nil || ns.GetDeletionTimestamp() != nil {
		t.Error("the teardown removed the customer's namespace")
	}
}

func TestManifestTeardownKeepsTheNamespaceOfWhatIsProtected(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	d.roll(t, configMap("settings", "one")+configMap("precious", "p", "berth.dev/prune: never"))
	plan, _ := d.planDestroy(t)
	wantContains(t, "summary", strings.Join(d.summary(t, plan), "\n"), "keep Namespace NS (something in it is protected)")
	d.applyJob(t, plan).must(t)
	if got := d.data(t, "precious"); got != `{"key":"p"}` {
		t.Errorf("after the teardown precious is %s", got)
	}
	if _, labelled := d.get(t, "Namespace/"+d.namespace).GetLabels()["berth.dev/created-for"]; labelled {
		t.Error("a later teardown would remove the namespace with what is protected in it")
	}
}

// A human edits a field between approval and apply.
func TestManifestStale(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	d.roll(t, configMap("settings", "one")+configMap("other", "same"))
	plan, _ := d.plan(t, configMap("settings", "two")+configMap("other", "same"))

	d.edit(t, "ConfigMap/settings", `{"data":{"key":"by hand"}}`)
	r := d.applyJob(t, plan).run(t)
	if r.Outcome != jobspec.OutcomeStale {
		t.Fatalf("outcome is %s: %s", r.Outcome, r.Error)
	}
	want := []jobspec.Difference{{Field: "ConfigMap/settings: data.key", Want: `"one"`, Got: `"by hand"`}}
	if diff := cmp.Diff(want, r.Differs); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
	if got := d.data(t, "settings"); got != `{"key":"by hand"}` {
		t.Errorf("the edit was overwritten: %s", got)
	}

	// Also of a field that the plan does not change, but that is ours.
	d.edit(t, "ConfigMap/settings", `{"data":{"key":"one"}}`)
	plan, _ = d.plan(t, configMap("settings", "two")+configMap("other", "same"))
	d.edit(t, "ConfigMap/other", `{"data":{"key":"by hand"}}`)
	r = d.applyJob(t, plan).run(t)
	if r.Outcome != jobspec.OutcomeStale || len(r.Differs) == 0 || r.Differs[0].Field != "ConfigMap/other: data.key" {
		t.Errorf("outcome %s, differences %+v", r.Outcome, r.Differs)
	}
	if got := d.data(t, "settings") + d.data(t, "other"); got != `{"key":"one"}{"key":"by hand"}` {
		t.Errorf("something was overwritten: %s", got)
	}

	// A field that is not ours is nobody's business.
	plan, _ = d.plan(t, configMap("settings", "two")+configMap("other", "same"))
	d.edit(t, "ConfigMap/settings", `{"data":{"their":"own"}}`)
	d.applyJob(t, plan).must(t)
	if got := d.data(t, "settings"); got != `{"key":"two","their":"own"}` {
		t.Errorf("ConfigMap settings has %s", got)
	}
}

// What somebody else set is taken only when the plan showed that.
func TestManifestTakesFieldsThatThePlanShowed(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	d.roll(t, configMap("settings", "one"))
	d.edit(t, "ConfigMap/settings", `{"data":{"key":"by hand"}}`)
	plan, _ := d.plan(t, configMap("settings", "one"))
	want := []string{`update ConfigMap NS/settings data.key: "by hand" -> "one" (takes data.key, owned by kubectl-edit)`}
	if diff := cmp.Diff(want, d.summary(t, plan)); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	d.applyJob(t, plan).must(t)
	if got := d.data(t, "settings"); got != `{"key":"one"}` {
		t.Errorf("ConfigMap settings has %s", got)
	}
	if _, result := d.plan(t, configMap("settings", "one")); !result.NoChange {
		t.Error("the field is taken again and again")
	}
}

// An object that was there before is taken over, so that a field that leaves the
// manifest later leaves the object as well.
func TestManifestTakesOver(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	d.namespace = d.Namespace(t)
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings", "namespace": d.namespace},
		"data": map[string]any{"key": "one"},
	}}
	resource, err := d.Resource(obj.GroupVersionKind(), d.namespace)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := resource.Create(t.Context(), obj, createBy("kubectl-create")); err != nil {
		t.Fatal(err)
	}
	plan, _ := d.plan(t, configMap("settings", "one"))
	want := []string{"update ConfigMap NS/settings (it is there already and is taken over)"}
	if diff := cmp.Diff(want, d.summary(t, plan)); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	d.applyJob(t, plan).must(t)
	if _, result := d.plan(t, configMap("settings", "one")); !result.NoChange {
		t.Error("the object is taken over again and again")
	}
}

// An object that moves to another component is neither lost nor made again, and
// the namespace goes with the last of the two.
func TestManifestOfTwoComponents(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	d.roll(t, configMap("settings", "one")+configMap("own", "x"))
	other := *d
	other.component, other.fence = "other", 0
	plan, _ := other.plan(t, configMap("settings", "one"))
	want := []string{"update ConfigMap NS/settings (it is there already and is taken over from component web)"}
	if diff := cmp.Diff(want, other.summary(t, plan)); diff != "" {
		t.Errorf("summary of the component that it moves to (-want +got):\n%s", diff)
	}
	other.applyJob(t, plan).must(t)
	uid := d.get(t, "ConfigMap/settings").GetUID()

	plan, result := d.plan(t, configMap("own", "x"))
	if !result.NoChange {
		t.Errorf("the component that it leaves would do %v", d.summary(t, plan))
	}
	plan, _ = d.planDestroy(t)
	want = []string{
		"delete ConfigMap NS/own", "delete ConfigMap NS/berth-kubernetes-manifest-web (the list of the objects of this component)",
		"keep Namespace NS (other components are in it; it goes with the last of them)",
	}
	if diff := cmp.Diff(want, d.summary(t, plan)); diff != "" {
		t.Errorf("summary of the first teardown (-want +got):\n%s", diff)
	}
	d.applyJob(t, plan).must(t)
	if left := d.get(t, "ConfigMap/settings"); left == nil || left.GetUID() != uid {
		t.Error("the object that moved went with the component that it left")
	}
	plan, _ = other.planDestroy(t)
	other.applyJob(t, plan).must(t)
	if d.get(t, "Namespace/"+d.namespace) != nil {
		t.Error("the namespace is still there")
	}
}

// A CRD and an object of it in one manifest.
func TestManifestWithItsOwnKind(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	group := d.namespace + ".example.test" // the test's own
	definition := `
apiVersion: GROUP/v1
kind: Basket
metadata: {name: mine}
spec: {size: 3}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: baskets.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Basket, listKind: BasketList, plural: baskets, singular: basket}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {size: {type: integer}}}}
`
	definition = strings.ReplaceAll(definition, "GROUP", group)
	plan, _ := d.plan(t, definition)
	want := []string{"create Namespace NS", "create CustomResourceDefinition.apiextensions.k8s.io baskets." + "NS.example.test", "create Basket.NS.example.test NS/mine"}
	if diff := cmp.Diff(want, d.summary(t, plan)); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	d.applyJob(t, plan).must(t)
	if _, result := d.plan(t, definition); !result.NoChange {
		t.Error("the same manifest is a change")
	}
	// A CRD that leaves the manifest is not pruned: all its objects would go.
	plan, _ = d.plan(t, configMap("settings", "one"))
	wantContains(t, "summary", strings.Join(d.summary(t, plan), "\n"), "keep CustomResourceDefinition")
	wantContains(t, "summary", strings.Join(d.summary(t, plan), "\n"), "delete Basket")
	d.applyJob(t, plan).must(t)
	plan, _ = d.planDestroy(t)
	wantContains(t, "summary of the teardown", strings.Join(d.summary(t, plan), "\n"), "delete CustomResourceDefinition")
	d.applyJob(t, plan).must(t)
}
