// Package rehearse plans what a rehearsal has no cluster for: charts and manifests
// are rendered with the install's own values and checked, and a stand-in gives their
// outputs. Everything else of a rehearsal is the Terraform engine's.
package rehearse

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/pkg/footprint"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/permissions"
	"github.com/berth-dev/berth/runner/engine/documents"
	"github.com/berth-dev/berth/runner/engine/helm"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
	"github.com/berth-dev/berth/runner/engine/terraform"
)

// Plan plans a part of a rehearsal. It changes nothing.
func Plan(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	r := j.Spec.Rehearsal
	if r.Chart == nil && r.Manifest == nil || r.Why != "" || j.Spec.Destroy {
		return terraform.Plan(ctx, j)
	}
	objects, notes, err := render(j)
	if err != nil {
		return jobspec.Result{}, err
	}
	plan, err := summarise(objects, notes)
	if err != nil {
		return jobspec.Result{}, err
	}
	result, err := terraform.PlanRendered(ctx, j, plan)
	if err != nil {
		return result, err
	}
	after, err := kube.Bare(objects)
	if err != nil {
		return result, err
	}
	return result, documents.LeaveKnown(j, footprint.Known{After: after})
}

// render gives the objects of the chart or the manifest, in the order of installing.
func render(j *job.Job) ([]*unstructured.Unstructured, []permissions.Note, error) {
	r := j.Spec.Rehearsal
	as := *j // a job of the part's own kind
	as.Spec.HelmChart, as.Spec.KubernetesManifest = r.Chart, r.Manifest
	var texts helm.Texts
	var notes []permissions.Note
	var namespace string
	var err error
	if r.Chart != nil {
		texts, notes, namespace, err = helm.OfflineJob(&as)
	} else {
		texts, namespace, err = manifest(&as)
	}
	if err != nil {
		return nil, nil, err
	}
	var all []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		objects, err := kube.ParseObjects(texts[name])
		if err != nil {
			return nil, nil, job.Wrongf("correct it, also where it has templates in it", "%s of %s, rendered: %v", name, j.Subject(), err)
		}
		for _, obj := range objects {
			if obj.GetNamespace() == "" && !clusterWide[obj.GetKind()] {
				obj.SetNamespace(namespace)
			}
			all = append(all, obj)
		}
	}
	kube.SortForInstall(all)
	return all, notes, nil
}

// manifestFile is the manifest of an artifact.
const manifestFile = "manifest.yaml"

// manifest renders the manifest of the artifact and its namespace.
func manifest(j *job.Job) (helm.Texts, string, error) {
	spec := j.Spec.KubernetesManifest
	namespace, err := j.Render("namespace", spec.Namespace)
	if err != nil {
		return nil, "", err
	}
	source, err := os.ReadFile(j.In("artifact", manifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", job.Refusef("build the component again", "the artifact of %s has no %s", j.Subject(), manifestFile)
	}
	if err != nil {
		return nil, "", err
	}
	text, err := j.RenderFile("manifest", spec.ManifestName, string(source))
	return helm.Texts{manifestFile: text}, kube.NamespaceOf(j.Spec.InstallID, strings.TrimSpace(namespace)), err
}

// clusterWide are the kinds of Kubernetes itself that live in no namespace. Those of
// others cannot be told without a cluster, so their objects are shown in one.
var clusterWide = map[string]bool{
	"Namespace": true, "Node": true, "PersistentVolume": true, "ClusterRole": true, "ClusterRoleBinding": true, "CustomResourceDefinition": true,
	"StorageClass": true, "PriorityClass": true, "IngressClass": true, "RuntimeClass": true, "APIService": true, "CSIDriver": true,
	"MutatingWebhookConfiguration": true, "ValidatingWebhookConfiguration": true, "ValidatingAdmissionPolicy": true, "ValidatingAdmissionPolicyBinding": true,
	"ClusterIssuer": true, "ClusterPolicy": true, "ClusterSecretStore": true, "ClusterExternalSecret": true, "NodePool": true, "EC2NodeClass": true,
}

// hidden is shown in the place of the values of a Secret.
const hidden = jobspec.Sensitive

// summarise shows every object, without the values of Secrets.
func summarise(objects []*unstructured.Unstructured, notes []permissions.Note) (jobspec.PlanSummary, error) {
	s := jobspec.PlanSummary{Create: len(objects)}
	var b strings.Builder
	for _, obj := range objects {
		s.Objects = append(s.Objects, jobspec.ObjectChange{Address: kube.RefOf(obj).Address(), Action: "create"})
		fmt.Fprintf(&b, "create %s\n", kube.RefOf(obj).Address())
	}
	for _, n := range notes {
		fmt.Fprintf(&b, "note: %s: %s\n", n.From, n.Text)
	}
	for _, obj := range objects {
		if obj.GetKind() == "Secret" {
			obj = obj.DeepCopy()
			for _, key := range []string{"data", "stringData"} {
				if values, ok := obj.Object[key].(map[string]any); ok {
					for name := range values {
						values[name] = hidden
					}
				}
			}
		}
		text, err := yaml.Marshal(obj.Object)
		if err != nil {
			return s, fmt.Errorf("write %s: %w", kube.RefOf(obj), err)
		}
		fmt.Fprintf(&b, "\n---\n%s", text)
	}
	s.Text = b.String()
	return s, nil
}
