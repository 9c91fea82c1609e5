package engine_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// waits is what never gets ready: nobody serves the image, and nobody makes volumes
// of the class for the claim of the StatefulSet, which no manifest has.
const waits = `apiVersion: apps/v1
kind: Deployment
metadata: {name: unpulled}
spec:
  replicas: 1
  selector: {matchLabels: {app: unpulled}}
  template:
    metadata: {labels: {app: unpulled}}
    spec:
      containers: [{name: web, image: "127.0.0.1:1/nobody/web:1"}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: unbound}
spec:
  replicas: 1
  serviceName: unbound
  selector: {matchLabels: {app: unbound}}
  template:
    metadata: {labels: {app: unbound}}
    spec:
      containers: [{name: web, image: "127.0.0.1:16452/pause:1", volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
    - metadata: {name: data}
      spec:
        accessModes: [ReadWriteOnce]
        storageClassName: nobody
        resources: {requests: {storage: 1Mi}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: alone}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: nobody
  resources: {requests: {storage: 1Mi}}
`

// What waits says why, in the words of its pods, their claims and the events about
// them, each once; a chart and a manifest say the same.
func TestHelmWhatWaitsSaysWhy(t *testing.T) {
	t.Parallel()
	c := chart(t, map[string]string{"templates/all.yaml": waits})
	plan, _ := c.plan(t)
	saysWhy(t, c.applyJob(t, plan))
}

func TestManifestWhatWaitsSaysWhy(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	plan, _ := d.plan(t, waits)
	saysWhy(t, d.applyJob(t, plan))
}

func saysWhy(t *testing.T, apply *jobDir) {
	t.Helper()
	apply.spec.TimeoutSeconds = 10
	r := apply.run(t)
	if r.Outcome != jobspec.OutcomeFailed {
		t.Errorf("outcome %s", r.Outcome)
	}
	for _, want := range []string{
		"took longer than the 10s", "Deployment/unpulled: ", `: image "127.0.0.1:1/nobody/web:1": `, "connection refused",
		"StatefulSet/unbound: ", "; pod unbound-0: Unschedulable: ", `of PersistentVolumeClaim/data-unbound-0: ProvisioningFailed: storageclass.storage.k8s.io "nobody" not found`,
		`PersistentVolumeClaim/alone: it has no volume yet, its phase is Pending; event ProvisioningFailed: `,
	} {
		wantContains(t, "error", r.Error, want)
	}
	if n := strings.Count(r.Error, "connection refused"); n != 1 {
		t.Errorf("the cause of the failed pull is said %d times: %s", n, r.Error)
	}
}
