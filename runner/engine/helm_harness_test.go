package engine_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/heldreleases"
)

// A charted is a Helm component in a real cluster.
type charted struct {
	*deployed
	chart  map[string]string // the artifact
	values map[string]string
	spec   jobspec.HelmChart
	// backend is what the control plane keeps; nil for none.
	backend *backend
}

// chartYAML is a chart without templates.
const chartYAML = "apiVersion: v2\nname: web\nversion: 1.0.0\nappVersion: \"2.0\"\n"

// chart gives a component with a chart of these files, in a namespace that its
// first apply makes.
func chart(t *testing.T, files map[string]string) *charted {
	t.Helper()
	all := map[string]string{"Chart.yaml": chartYAML, "values.yaml": "value: one\n"}
	maps.Copy(all, files)
	d := deploy(t)
	return &charted{deployed: d, chart: all, spec: jobspec.HelmChart{
		ReleaseName: "web", Namespace: d.namespace, CreateNamespace: true, StorageDriver: "secret",
	}}
}

// oneMap is a chart template with one ConfigMap that has a value.
const oneMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  key: {{ .Values.value | quote }}\n"

// pauseImage does nothing until it is asked to end, and ends well then. The
// development cluster has it.
const pauseImage = "127.0.0.1:16452/pause:1"

// endsSoon makes the kubelet ask it, since nothing listens there.
const endsSoon = "{tcpSocket: {port: 1}, periodSeconds: 1, failureThreshold: 1}"

// hookJob is a chart template of a Job that is a hook. It ends soon, or never.
func hookJob(name, events string, ends bool) string {
	text := fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata:
  name: %s
  annotations: {helm.sh/hook: "%s"}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers:
        - name: hook
          image: %s
`, name, events, pauseImage)
	if ends {
		text += "          livenessProbe: " + endsSoon + "\n"
	}
	return text
}

func (c *charted) job(t *testing.T, operation jobspec.Operation) *jobDir {
	t.Helper()
	j := c.deployed.job(t, operation)
	j.spec.Kind, j.spec.KubernetesManifest = jobspec.KindHelmChart, nil
	spec := c.spec
	spec.Values = c.values
	if c.backend != nil {
		maps.Copy(j.env, c.backend.env())
		c.backend.set(func(b *backend) { spec.RecordsHeld = b.state != nil })
	}
	j.spec.HelmChart = &spec
	return j
}

// planJob is a plan of the chart as it is now, not yet run.
func (c *charted) planJob(t *testing.T) *jobDir {
	t.Helper()
	j := c.job(t, jobspec.OperationPlan)
	for name, contents := range c.chart {
		j.write(t, "in/artifact/"+name, contents)
	}
	return j
}

func (c *charted) plan(t *testing.T) (*jobDir, jobspec.Result) {
	t.Helper()
	j := c.planJob(t)
	return j, j.must(t)
}

func (c *charted) planDestroy(t *testing.T) (*jobDir, jobspec.Result) {
	t.Helper()
	j := c.job(t, jobspec.OperationPlan)
	j.spec.Destroy = true
	return j, j.must(t)
}

// planAfter runs the plan that follows a change of uncertain outcome.
func (c *charted) planAfter(t *testing.T, before *jobDir) *jobDir {
	t.Helper()
	j := c.planJob(t)
	j.spec.Destroy, j.spec.Continues = before.spec.Destroy, "chg_0"
	copyTree(t, filepath.Join(before.path, "out/pinned"), filepath.Join(j.path, "in/previous"))
	j.must(t)
	return j
}

// applyJob is the apply of a plan under the next fence, not yet run.
func (c *charted) applyJob(t *testing.T, plan *jobDir) *jobDir {
	t.Helper()
	j := c.job(t, jobspec.OperationApply)
	c.fence++
	j.spec.Fence, j.spec.Destroy = c.fence, plan.spec.Destroy
	copyTree(t, filepath.Join(plan.path, "out/pinned"), filepath.Join(j.path, "in/pinned"))
	return j
}

// roll plans and applies the chart as it is now.
func (c *charted) roll(t *testing.T) (plan, apply *jobDir) {
	t.Helper()
	plan, _ = c.plan(t)
	apply = c.applyJob(t, plan)
	apply.must(t)
	return plan, apply
}

// history is what Helm knows of the release: the status of each revision.
func (c *charted) history(t *testing.T) []release.Status {
	t.Helper()
	var statuses []release.Status
	for _, r := range c.revisions(t) {
		statuses = append(statuses, r.Info.Status)
	}
	return statuses
}

func (c *charted) revisions(t *testing.T) []*release.Release {
	t.Helper()
	var d driver.Driver = driver.NewSecrets(c.Client.CoreV1().Secrets(c.namespace))
	if c.spec.StorageDriver == "configmap" {
		d = driver.NewConfigMaps(c.Client.CoreV1().ConfigMaps(c.namespace))
	}
	if c.spec.StorageDriver == "nuon" {
		held, err := heldreleases.Read(t.Context(), c.backend.env())
		if err != nil {
			t.Fatal(err)
		}
		d = held.Driver(c.namespace)
	}
	var list []*release.Release
	for version := 1; version <= 20; version++ {
		if r, err := storage.Init(d).Get(c.spec.ReleaseName, version); err == nil {
			list = append(list, r)
		}
	}
	return list
}

// helm runs the Helm that customers use, with the release's namespace and
// driver. The test is skipped where there is none.
func (c *charted) helm(t *testing.T, args ...string) string {
	t.Helper()
	path := os.Getenv("HELM")
	if path == "" {
		path, _ = filepath.Abs("../../.bin/kube/helm")
	}
	if _, err := os.Stat(path); err != nil {
		t.Skip("no helm: `make kube` builds one, or set HELM")
	}
	cmd := exec.CommandContext(t.Context(), path, append(args, "--namespace", c.namespace)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "HELM_DRIVER="+c.spec.StorageDriver)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("helm %v: %v\n%s", args, err, stderr.Bytes())
	}
	return string(out)
}

// put makes a ConfigMap that belongs to nobody.
func (c *charted) put(t *testing.T, name, value string) {
	t.Helper()
	_, err := c.Client.CoreV1().ConfigMaps(c.namespace).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"key": value},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}
