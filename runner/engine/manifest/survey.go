package manifest

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
	"github.com/berth-dev/berth/runner/engine/survey"
)

// Objects are those of the component: as the plan of what is live pinned them in
// in/live, and those of the inventory that are not in it. One that moved to another
// component is that one's. Values of now that nobody deployed are not read.
func Objects(ctx context.Context, j *job.Job, c *kube.Cluster) (survey.Objects, error) {
	var live pinned
	if err := job.ReadJSON(j.In("live", pinnedFile), &live); err != nil || live.Format != pinnedFormat {
		return survey.Objects{}, job.Failf("deploy it again", "what was deployed of %s is not on this machine in a form that this engine knows", j.Subject())
	}
	m := component{cluster: c, inventory: c.InventoryOf(j, live.Namespace), objects: live.Objects}
	record, err := m.inventory.Load(ctx)
	if err != nil {
		return survey.Objects{}, err
	}
	if !record.Exists {
		return survey.Objects{}, job.Failf("deploy it", "%s has no objects in namespace %s", j.Subject(), live.Namespace)
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
