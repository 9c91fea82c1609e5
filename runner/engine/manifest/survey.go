package manifest

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
	"github.com/berth-dev/berth/runner/engine/survey"
)

// Objects are those of the component: as the manifest of the job's artifact
// renders them, and those of the inventory that are not in it. One that moved to
// another component is that one's.
func Objects(ctx context.Context, j *job.Job, c *kube.Cluster) (survey.Objects, error) {
	namespace, err := renderNamespace(j)
	if err != nil {
		return survey.Objects{}, err
	}
	m := component{cluster: c, inventory: c.InventoryOf(j, namespace)}
	record, err := m.inventory.Load(ctx)
	if err != nil {
		return survey.Objects{}, err
	}
	if !record.Exists {
		return survey.Objects{}, job.Failf("deploy it", "%s has no objects in namespace %s", j.Subject(), namespace)
	}
	if m.objects, _, err = render(j, c, namespace); err != nil {
		return survey.Objects{}, err
	}
	others, err := m.inventory.Others(ctx)
	if err != nil {
		return survey.Objects{}, err
	}
	objects := survey.Objects{Wanted: m.objects, Keeps: func(ref kube.Ref, live *unstructured.Unstructured) string {
		return protection(ref, live, false, m.inventory.Install)
	}}
	for _, p := range m.going(record, nil) {
		if p.OwnedBy(others) == "" {
			objects.Former = append(objects.Former, p.Ref)
		}
	}
	return objects, nil
}
