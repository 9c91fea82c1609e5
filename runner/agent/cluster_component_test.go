package agent_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/engine/kubetest"
)

// component is one in a real cluster, with all that is done to it: a ConfigMap
// with a value and a Deployment whose one pod has the value too.
type component struct {
	*runner
	kind      jobspec.Kind
	cluster   *kubetest.Connection
	namespace string
	resource  jobspec.Resource
	fence     int64
	deploysOf int           // how many there were
	own       time.Duration // what a deploy takes when nobody is killed
	objects   string        // in place of the usual ones

	held   atomic.Pointer[hold]
	closed atomic.Bool // pods do not get ready

	mu     sync.Mutex
	writes map[string]int // to the Deployment, by value
	value  string
}

// hold stops one request of an engine to the API server.
type hold struct {
	at      string // one of the below
	reached chan struct{}
	release chan struct{}
}

const (
	atDryRun    = "a dry run"
	beforeWrite = "a write"
	afterWrite  = "a write that is done"
)

func newComponent(t *testing.T, kind jobspec.Kind) *component {
	t.Helper()
	connection := kubetest.Cluster(t)
	c := &component{
		runner: newRunner(t, runnerapi.RunnerKindInstall), kind: kind, cluster: connection, namespace: connection.Namespace(t),
		resource: jobspec.Resource{ID: id.New(id.Resource), Kind: "component", Name: "web"}, writes: map[string]int{},
	}
	installEngine(t, filepath.Join(filepath.Dir(c.binary), realEngine))
	kubeconfig := connection.ProxyOfAll(t, c.write, func(r *http.Request) {
		if r.URL.Query().Get("dryRun") != "" {
			c.stopAt(atDryRun, func() {})
		}
	})
	if err := datadir.WriteJSON(c.dir.Config(), map[string]any{"kubeconfig": kubeconfig}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.openPods(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return c
}

// installEngine puts the engine as it is shipped at path: of `make build` when
// there is one, else built now.
func installEngine(t *testing.T, path string) {
	t.Helper()
	built, err := buildEngine()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, built, 0o755); err != nil {
		t.Fatal(err)
	}
}

var buildEngine = sync.OnceValues(func() ([]byte, error) {
	if dir := os.Getenv("BERTH_LIBEXEC"); dir != "" {
		return os.ReadFile(filepath.Join(dir, realEngine))
	}
	dir, err := os.MkdirTemp("", "berth-engine-test-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, realEngine)
	if out, err := exec.Command("go", "build", "-o", path, "github.com/berth-dev/berth/runner/cmd/engine").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the engine: %w\n%s", err, out)
	}
	return os.ReadFile(path)
})

// write is called for each write of an engine.
func (c *component) write(w kubetest.Write) {
	if strings.Contains(w.Path, "/deployments") {
		c.mu.Lock()
		c.writes[c.value]++
		c.mu.Unlock()
	}
	c.stopAt(beforeWrite, func() {})
	c.stopAt(afterWrite, func() { w.Forward() })
}

func (c *component) stopAt(at string, first func()) {
	h := c.held.Load()
	if h == nil || h.at != at || !c.held.CompareAndSwap(h, nil) {
		return
	}
	first()
	close(h.reached)
	<-h.release
}

// openPods makes pods ready, which they cannot be by themselves, until ctx ends.
func (c *component) openPods(ctx context.Context) {
	pods := c.cluster.Client.CoreV1().Pods(c.namespace)
	patch := []byte(`{"status":{"conditions":[{"type":"berth.dev/go","status":"True"}]}}`)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		list, err := pods.List(ctx, metav1.ListOptions{})
		if err != nil || c.closed.Load() {
			continue
		}
		for _, pod := range list.Items {
			if !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == "berth.dev/go" }) {
				_, _ = pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status") // again at the next tick
			}
		}
	}
}

const objects = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {value: VALUE}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {value: VALUE}}
    spec:
      terminationGracePeriodSeconds: 1
      readinessGates: [{conditionType: berth.dev/go}]
      containers: [{name: web, image: "IMAGE"}]
`

// pack puts the artifact of a value into the own registry, while no agent runs.
func (c *component) pack(t *testing.T, value string) jobspec.Artifact {
	t.Helper()
	text := strings.ReplaceAll(c.objects, "VALUE", value)
	if text == "" {
		text = strings.NewReplacer("VALUE", value, "IMAGE", c.cluster.Image(t)).Replace(objects)
	}
	kind, files := oci.KindManifest, map[string]string{"manifest.yaml": text}
	if c.kind == jobspec.KindHelmChart {
		kind, files = oci.KindHelmChart, map[string]string{
			"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "templates/all.yaml": text,
		}
	}
	dir := t.TempDir()
	for name, contents := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(contents), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	layout, err := oci.Open(c.dir.Artifacts())
	if err != nil {
		t.Fatal(err)
	}
	packed, err := oci.Pack(t.Context(), layout, oci.PackInput{Kind: kind, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return jobspec.Artifact{Repository: c.plane.orgID + "/shop/web", Digest: packed.Digest.String()}
}

// shape makes a job of the component's kind.
func (c *component) shape(s *jobspec.Spec) {
	s.Kind, s.TerraformModule = c.kind, nil
	if c.kind == jobspec.KindHelmChart {
		s.HelmChart = &jobspec.HelmChart{ReleaseName: "web", Namespace: c.namespace, StorageDriver: "secret"}
	} else {
		s.KubernetesManifest = &jobspec.KubernetesManifest{Namespace: c.namespace}
	}
}

// world is what there is of the component in the cluster.
type world struct {
	Generation int64  // of the Deployment
	Value      string // of the ConfigMap
	Template   string // value of the Deployment's pods
	Releases   []string
}

// look reads from the cluster.
func (c *component) look(t *testing.T) (w world) {
	t.Helper()
	client := c.cluster.Client
	maps, err := client.CoreV1().ConfigMaps(c.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=settings"})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range maps.Items {
		w.Value = m.Data["value"]
	}
	deployments, err := client.AppsV1().Deployments(c.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range deployments.Items {
		w.Generation, w.Template = d.Generation, d.Spec.Template.Annotations["value"]
	}
	secrets, err := client.CoreV1().Secrets(c.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "owner=helm"})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(secrets.Items, func(a, b corev1.Secret) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for _, s := range secrets.Items {
		w.Releases = append(w.Releases, s.Labels["status"])
	}
	return w
}

// realEngine is the name of the real engine next to the test's.
const realEngine = "berth-engine"

// handOver becomes the real engine, once the test lets it. It leaves a line per
// engine that was started.
func handOver(engine, dir, job string) int {
	install := os.Getenv("BERTH_INSTALL_DIR")
	f, err := os.OpenFile(filepath.Join(install, "started"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, job)
		f.Close()
	}
	for err == nil && exists(filepath.Join(install, "hold")) {
		time.Sleep(10 * time.Millisecond)
	}
	if err == nil {
		err = syscall.Exec(engine, []string{engine, "run", dir}, os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	return jobspec.ExitFailed
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
