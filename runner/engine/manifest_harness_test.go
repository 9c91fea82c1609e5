package engine_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/kube"
	"github.com/berth-dev/berth/runner/engine/kubetest"
)

// A deployed is a manifest component in a real cluster. Its jobs are run by the
// engine, as the agent would.
type deployed struct {
	*kubetest.Connection
	component string
	// resourceID is of the component; "" for cmp_1.
	resourceID string
	namespace  string
	fence      int64
	// kubeconfig is what the engine gets; tests put a proxy in between.
	kubeconfig string
	// state is what templates read.
	state map[string]any
}

// deploy gives a component in a namespace that its first apply makes.
func deploy(t *testing.T) *deployed {
	t.Helper()
	c := kubetest.Cluster(t)
	return &deployed{Connection: c, component: "web", namespace: c.Name(t), kubeconfig: c.Kubeconfig}
}

func (d *deployed) job(t *testing.T, operation jobspec.Operation) *jobDir {
	t.Helper()
	j := newJob(t, jobspec.Spec{
		Kind: jobspec.KindKubernetesManifest, Operation: operation,
		Resource: &jobspec.Resource{ID: cmp.Or(d.resourceID, "cmp_1"), Kind: "component", Name: d.component},
		Artifact: &jobspec.Artifact{Repository: "org_1/app/web", Digest: "sha256:0"},
		Work:     jobspec.Work{KubernetesManifest: &jobspec.KubernetesManifest{Namespace: d.namespace, CreateNamespace: true}},
	})
	if d.state != nil {
		j.spec.State = state(t, d.state)
	}
	data, err := os.ReadFile(d.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	j.write(t, "in/kubeconfig", string(data))
	j.env["KUBECONFIG"] = filepath.Join(j.path, "in/kubeconfig")
	return j
}

// planJob is a plan of a manifest, not yet run.
func (d *deployed) planJob(t *testing.T, manifest string) *jobDir {
	t.Helper()
	j := d.job(t, jobspec.OperationPlan)
	j.write(t, "in/artifact/manifest.yaml", manifest)
	return j
}

// plan runs a plan that must succeed.
func (d *deployed) plan(t *testing.T, manifest string) (*jobDir, jobspec.Result) {
	t.Helper()
	j := d.planJob(t, manifest)
	return j, j.must(t)
}

// planDestroy runs the plan of a teardown.
func (d *deployed) planDestroy(t *testing.T) (*jobDir, jobspec.Result) {
	t.Helper()
	j := d.job(t, jobspec.OperationPlan)
	j.spec.Destroy = true
	return j, j.must(t)
}

// planAfter runs the plan that follows a change of uncertain outcome.
func (d *deployed) planAfter(t *testing.T, before *jobDir) *jobDir {
	t.Helper()
	j := d.job(t, jobspec.OperationPlan)
	j.spec.Destroy, j.spec.Continues = before.spec.Destroy, "chg_0"
	if !j.spec.Destroy {
		j.write(t, "in/artifact/manifest.yaml", before.read(t, "in/artifact/manifest.yaml"))
	}
	copyTree(t, filepath.Join(before.path, "out/pinned"), filepath.Join(j.path, "in/previous"))
	j.must(t)
	return j
}

// applyJob is the apply of a plan under the next fence, not yet run.
func (d *deployed) applyJob(t *testing.T, plan *jobDir) *jobDir {
	t.Helper()
	j := d.job(t, jobspec.OperationApply)
	d.fence++
	j.spec.Fence, j.spec.Destroy = d.fence, plan.spec.Destroy
	copyTree(t, filepath.Join(plan.path, "out/pinned"), filepath.Join(j.path, "in/pinned"))
	return j
}

// roll plans and applies a manifest.
func (d *deployed) roll(t *testing.T, manifest string) {
	t.Helper()
	plan, _ := d.plan(t, manifest)
	d.applyJob(t, plan).must(t)
}

// get reads an object of the namespace; nil when it is not there.
func (d *deployed) get(t *testing.T, ref string) *unstructured.Unstructured {
	t.Helper()
	obj, err := d.Get(t.Context(), d.ref(ref))
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

// ref reads "Deployment/web".
func (d *deployed) ref(text string) kube.Ref {
	kind, name, _ := strings.Cut(text, "/")
	ref := kube.Ref{Version: "v1", Kind: kind, Namespace: d.namespace, Name: name}
	switch kind {
	case "Deployment":
		ref.Group = "apps"
	case "Job":
		ref.Group = "batch"
	case "Namespace":
		ref.Namespace = ""
	}
	return ref
}

// edit is what somebody does with kubectl. Proxies call it too, not only the
// test.
func (d *deployed) edit(t *testing.T, ref, mergePatch string) {
	t.Helper()
	r := d.ref(ref)
	resource, err := d.Resource(r.GVK(), r.Namespace)
	if err != nil {
		t.Error(err)
		return
	}
	_, err = resource.Patch(t.Context(), r.Name, types.MergePatchType, []byte(mergePatch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	if err != nil {
		t.Error(err)
	}
}

// status writes the status of an object, as its controller would.
func (d *deployed) status(t *testing.T, gvr schema.GroupVersionResource, name, mergePatch string) {
	t.Helper()
	_, err := d.Dynamic.Resource(gvr).Namespace(d.namespace).Patch(t.Context(), name, types.MergePatchType, []byte(mergePatch), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
}

func (d *deployed) delete(t *testing.T, ref string) {
	t.Helper()
	r := d.ref(ref)
	resource, err := d.Resource(r.GVK(), r.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	if err := resource.Delete(t.Context(), r.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// data are the values of a ConfigMap; "absent" when it is not there.
func (d *deployed) data(t *testing.T, name string) string {
	t.Helper()
	obj := d.get(t, "ConfigMap/"+name)
	if obj == nil {
		return "absent"
	}
	values, _, _ := unstructured.NestedStringMap(obj.Object, "data")
	text, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// summary is the summary of a plan as lines: "update ConfigMap ns/a data.k".
func (d *deployed) summary(t *testing.T, plan *jobDir) []string {
	t.Helper()
	var s jobspec.PlanSummary
	plan.readJSON(t, "out/plan.summary.json", &s)
	lines := []string{}
	for _, o := range s.Objects {
		line := o.Action + " " + strings.ReplaceAll(o.Address, d.namespace, "NS")
		if o.Action != "create" {
			for _, f := range o.Fields {
				line += fmt.Sprintf(" %s: %s -> %s", f.Path, f.Before, f.After)
			}
		}
		if o.Reason != "" {
			line += " (" + o.Reason + ")"
		}
		lines = append(lines, line)
	}
	return lines
}

// configMap is the YAML of a ConfigMap with a value.
func configMap(name, value string, annotations ...string) string {
	text := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n", name)
	if len(annotations) > 0 {
		text += "  annotations:\n    " + strings.Join(annotations, "\n    ") + "\n"
	}
	return text + fmt.Sprintf("data:\n  key: %q\n---\n", value)
}
