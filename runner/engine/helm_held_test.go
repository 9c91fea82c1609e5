package engine_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/berth-dev/berth/pkg/helmstate"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// withControlPlane keeps the releases of a chart with the control plane.
func (c *charted) withControlPlane(t *testing.T) *charted {
	t.Helper()
	c.backend, c.spec.StorageDriver = newBackend(t), "nuon"
	return c
}

// held is a chart whose releases the control plane keeps.
func held(t *testing.T) *charted {
	t.Helper()
	return chart(t, map[string]string{"templates/one.yaml": oneMap}).withControlPlane(t)
}

// inCluster counts the records of Helm that the cluster has in the namespace.
func (c *charted) inCluster(t *testing.T) int {
	t.Helper()
	of := metav1.ListOptions{LabelSelector: "owner=helm"}
	secrets, err := c.Client.CoreV1().Secrets(c.namespace).List(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	maps, err := c.Client.CoreV1().ConfigMaps(c.namespace).List(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	return len(secrets.Items) + len(maps.Items)
}

// document is what the control plane keeps, in clear.
func (c *charted) document(t *testing.T) helmstate.Document {
	t.Helper()
	var body []byte
	c.backend.set(func(b *backend) { body = bytes.Clone(b.state) })
	d, err := helmstate.Parse(body)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A chart with storage_driver nuon from its install to its teardown: the cluster has no
// record of it, the history has its limit, a plan takes no lock and writes nothing, and
// what the vendor may see has no value in it.
func TestHelmHeldByTheControlPlane(t *testing.T) {
	t.Parallel()
	c := held(t)
	c.spec.MaxHistory = 2
	for _, value := range []string{"one", "two", "three"} {
		c.values = map[string]string{"value": value + "-canary-held"}
		c.roll(t)
	}
	if diff := cmp.Diff([]release.Status{release.StatusSuperseded, release.StatusDeployed}, c.history(t)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	if n := c.inCluster(t); n != 0 {
		t.Errorf("the cluster has %d records", n)
	}
	before := c.document(t)
	c.wantNoChange(t)
	if after := c.document(t); after.Serial != before.Serial || c.backend.locked() {
		t.Errorf("a plan took serial %d to %d, locked %v", before.Serial, after.Serial, c.backend.locked())
	}
	shown := fmt.Sprint(before.Resources)
	if strings.Contains(shown, "canary-held") || !strings.Contains(shown, "deployed") {
		t.Errorf("the vendor would see %s", shown)
	}
	if r := c.revisions(t); !strings.Contains(r[len(r)-1].Manifest, "three-canary-held") {
		t.Error("the record holds no manifest")
	}
	probe := c.job(t, jobspec.OperationRun)
	probe.spec.HelmChart.RecordsHeld = false
	for name := range c.backend.env() { // it goes on without the control plane
		delete(probe.env, name)
	}
	wantContains(t, "log of the probe", probe.must(t).Error+probe.log(t), "all 1 objects of release web are ready")

	plan, _ := c.planDestroy(t)
	c.applyJob(t, plan).must(t)
	if d := c.document(t); len(d.Helm.Records) != 0 || len(d.Resources) != 0 || d.Serial <= before.Serial || d.Lineage != before.Lineage {
		t.Errorf("after the teardown there are %d records, serial %d, lineage %q", len(d.Helm.Records), d.Serial, d.Lineage)
	}
	if _, r := c.planDestroy(t); !r.NoChange {
		t.Error("a second teardown has something to do")
	}
}

// A release moves when storage_driver changes: the plan says so, no object is made
// twice, the whole history comes along, and the place that it leaves is empty.
func TestHelmReleaseMoves(t *testing.T) {
	t.Parallel()
	c := held(t)
	c.spec.StorageDriver = "secret"
	c.roll(t)
	c.values = map[string]string{"value": "two"}
	c.roll(t)
	uid := c.get(t, "ConfigMap/one").GetUID()
	for i, driver := range []string{"nuon", "configmap", "nuon"} {
		from := c.spec.StorageDriver
		c.spec.StorageDriver = driver
		plan, _ := c.roll(t)
		summary := plan.read(t, "out/plan.summary.json")
		wantContains(t, "plan", summary, fmt.Sprintf(`moves from the storage driver \"%s\" to \"%s\", with all its revisions`, from, driver))
		wantContains(t, "plan", summary, `"storage_driver"`)
		if got := c.history(t); len(got) != 3+i {
			t.Errorf("after the move to %s the history is %v", driver, got)
		}
		c.wantDeployed(t)
		inCluster, records := c.inCluster(t), len(c.document(t).Helm.Records)
		if driver == "nuon" && inCluster != 0 || driver != "nuon" && (records != 0 || inCluster != 3+i) {
			t.Errorf("after the move to %s there are %d records in the cluster, %d with the control plane", driver, inCluster, records)
		}
	}
	if c.get(t, "ConfigMap/one").GetUID() != uid {
		t.Error("the object was made again")
	}
	c.spec.StorageDriver = "secret" // it leaves from where it is
	plan, _ := c.planDestroy(t)
	c.applyJob(t, plan).must(t)
	if c.get(t, "Namespace/"+c.namespace) != nil {
		t.Error("the namespace is still there")
	}
}

// The engine is killed after each write of a move, be it one in the cluster or one with
// the control plane. Nothing is lost or installed twice.
func TestHelmMoveKilledAtEachWrite(t *testing.T) {
	t.Parallel()
	for _, way := range []struct {
		from, to string
		writes   int
	}{{"secret", "nuon", 3}, {"nuon", "secret", 4}} {
		t.Run(way.from+" to "+way.to, func(t *testing.T) {
			t.Parallel()
			c := held(t)
			c.spec.StorageDriver = way.from
			c.roll(t)
			c.values = map[string]string{"value": "two"}
			c.roll(t)
			c.spec.StorageDriver = way.to
			plan, _ := c.plan(t)
			for n := 2; n <= way.writes; n++ { // claim, inventory, then those of the move
				c.kill(t, plan, n)
				c.backend.set(func(b *backend) { b.lock = nil }) // by the next grant
				plan = c.planAfter(t, plan)
			}
			c.applyJob(t, plan).must(t)
			c.wantDeployed(t)
			for i, r := range c.revisions(t) {
				if i == 0 && !strings.Contains(r.Manifest, "one") {
					t.Error("the first revision did not come along")
				}
			}
			if n, records := c.inCluster(t), len(c.document(t).Helm.Records); n > 0 && records > 0 {
				t.Errorf("%d records in the cluster, %d with the control plane", n, records)
			}
		})
	}
}

// The engine is killed right after each state that the backend takes: what is pending
// then is recovered as one in the cluster is.
func TestHelmHeldKilledAtEachState(t *testing.T) {
	t.Parallel()
	states := 0
	for n := 1; n == 1 || n <= states; n++ {
		c := held(t)
		c.roll(t)
		c.values = map[string]string{"value": "two"}
		plan, _ := c.plan(t)
		if n == 1 {
			counted := held(t)
			counted.roll(t)
			counted.values = c.values
			p, _ := counted.plan(t)
			apply := counted.applyJob(t, p)
			counted.backend.set(func(b *backend) { b.writes = 0 })
			apply.must(t)
			if states = counted.backend.writes; states < 3 {
				t.Fatalf("an upgrade writes %d states", states)
			}
		}
		c.killAtState(t, plan, n)
		c.goOn(t, plan)
		c.wantDeployed(t)
	}
}

// killAtState kills the apply of a plan once the backend has its nth state.
func (c *charted) killAtState(t *testing.T, plan *jobDir, n int) {
	t.Helper()
	var engine *exec.Cmd
	started := make(chan struct{})
	apply := c.applyJob(t, plan)
	c.backend.set(func(b *backend) {
		b.writes = 0
		b.took = func(writes int) {
			if writes == n {
				<-started
				_ = engine.Process.Kill()
			}
		}
	})
	engine = apply.start(t)
	close(started)
	if err := engine.Wait(); err == nil || engine.ProcessState.Exited() {
		t.Fatalf("the apply ended by itself before state %d:\n%s", n, apply.log(t))
	}
	c.backend.set(func(b *backend) { b.took, b.lock = nil, nil })
}

// A backend that refuses states: an upgrade changes nothing when it cannot say that it
// begins, and none is called deployed whose record could not be kept.
func TestHelmHeldAndRefused(t *testing.T) {
	t.Parallel()
	c := held(t)
	c.roll(t)
	c.values = map[string]string{"value": "two"}
	plan, _ := c.plan(t)
	for taken := range 3 {
		apply := c.applyJob(t, plan)
		c.backend.set(func(b *backend) {
			b.writes = 0
			b.took = func(writes int) { b.refuses = writes >= taken }
			b.refuses = taken == 0
		})
		r := apply.run(t)
		c.backend.set(func(b *backend) { b.took, b.refuses = nil, false })
		if r.Outcome != jobspec.OutcomeFailed || !strings.Contains(r.Error, "could not be saved") {
			t.Fatalf("after %d states: outcome %s: %s", taken, r.Outcome, r.Error)
		}
		if got := c.data(t, "one"); taken == 0 && got != `{"key":"one"}` {
			t.Errorf("it changed the cluster without a record: %s", got)
		}
		if c.backend.locked() {
			t.Error("the lock stays")
		}
		plan = c.planAfter(t, plan)
	}
	c.applyJob(t, plan).must(t)
	c.wantDeployed(t)
}

// Somebody else holds the state: nothing is touched.
func TestHelmHeldByAnother(t *testing.T) {
	t.Parallel()
	c := held(t)
	plan, _ := c.plan(t)
	c.backend.set(func(b *backend) { b.lock = []byte(`{"ID":"another"}`) })
	r := c.applyJob(t, plan).run(t)
	if r.Outcome != jobspec.OutcomeFailed || !strings.Contains(r.Error, "locked") {
		t.Errorf("outcome %s: %s", r.Outcome, r.Error)
	}
	if c.get(t, "Namespace/"+c.namespace) != nil {
		t.Error("the namespace was made")
	}
}

// A namespace that is removed by hand takes the release with it, as one that is kept in
// the cluster.
func TestHelmHeldWithoutItsNamespace(t *testing.T) {
	t.Parallel()
	c := held(t)
	c.roll(t)
	c.roll2(t, "two")
	c.removeNamespace(t)
	plan, _ := c.roll(t)
	wantContains(t, "plan", plan.read(t, "out/plan.summary.json"), "is gone: its 2 records go too")
	if diff := cmp.Diff([]release.Status{release.StatusDeployed}, c.history(t)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	c.removeNamespace(t)
	plan, _ = c.planDestroy(t)
	c.applyJob(t, plan).must(t)
	if d := c.document(t); len(d.Helm.Records) != 0 {
		t.Errorf("%d records stay", len(d.Helm.Records))
	}
}

// removeNamespace removes it as a person would, and waits.
func (c *charted) removeNamespace(t *testing.T) {
	t.Helper()
	namespaces := c.Client.CoreV1().Namespaces()
	watch, err := namespaces.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + c.namespace})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	if err := namespaces.Delete(t.Context(), c.namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for e := range watch.ResultChan() {
		if e.Type == apiwatch.Deleted {
			return
		}
	}
	t.Fatal("the namespace is still there")
}

// keepSecret keeps a release in a Secret, as Helm does.
func (c *charted) keepSecret(t *testing.T, r *release.Release) {
	t.Helper()
	if err := storage.Init(driver.NewSecrets(c.Client.CoreV1().Secrets(c.namespace))).Create(r); err != nil {
		t.Fatal(err)
	}
}

func (c *charted) roll2(t *testing.T, value string) {
	t.Helper()
	c.values = map[string]string{"value": value}
	c.roll(t)
}

// A release of the same name that somebody else keeps in the cluster is not taken for a
// copy.
func TestHelmHeldAndAStrangersRelease(t *testing.T) {
	t.Parallel()
	c := held(t)
	c.roll(t)
	record := c.revisions(t)[0]
	record.Manifest += "# another\n"
	c.keepSecret(t, record)
	r := c.planJob(t).run(t)
	if r.Outcome != jobspec.OutcomeFailed || !strings.Contains(r.Error, "there are two releases web, which differ") {
		t.Errorf("outcome %s: %s", r.Outcome, r.Error)
	}
}
