package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// probesJob looks at components of the cluster together.
func (d *deployed) probesJob(t *testing.T, names ...string) *jobDir {
	t.Helper()
	spec := jobspec.Spec{Kind: jobspec.KindProbes, Operation: jobspec.OperationRun}
	for _, name := range names {
		spec.Probes = append(spec.Probes, jobspec.Probe{
			Kind: jobspec.KindKubernetesManifest, Resource: jobspec.Resource{ID: "cmp_" + name, Kind: "component", Name: name},
			Work: jobspec.Work{KubernetesManifest: &jobspec.KubernetesManifest{Namespace: d.namespace}},
		})
	}
	j := newJob(t, spec)
	data, err := os.ReadFile(d.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	j.write(t, "in/kubeconfig", string(data))
	j.env["KUBECONFIG"] = filepath.Join(j.path, "in/kubeconfig")
	return j
}

// rollAs deploys a component of one ConfigMap under its own name.
func (d *deployed) rollAs(t *testing.T, name string) {
	t.Helper()
	d.component = name
	d.resourceID = "cmp_" + name
	d.roll(t, configMap(name, "one"))
}

// One engine looks at several components: each look is what a job of its own would say, and one
// that fails leaves the others alone.
func TestProbesTogether(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	for _, name := range []string{"first", "second"} {
		d.rollAs(t, name)
	}
	d.delete(t, "ConfigMap/second")
	j := d.probesJob(t, "first", "second", "never")
	r := j.must(t)
	if len(r.Looks) != 3 {
		t.Fatalf("%d looks: %+v", len(r.Looks), r)
	}
	if l := r.Looks[0]; l.Outcome != jobspec.OutcomeSucceeded || len(l.Findings) > 0 {
		t.Errorf("first: %+v", l)
	}
	if l := r.Looks[1]; l.Outcome != jobspec.OutcomeFailed || !strings.Contains(l.Error, "is not there") || len(l.Findings) != 1 {
		t.Errorf("second: %+v", l)
	}
	if l := r.Looks[2]; l.Outcome != jobspec.OutcomeFailed || !strings.Contains(l.Error, "component never has no objects") {
		t.Errorf("never: %+v", l)
	}
}

// Together, components cost a fraction of what an engine for each costs: with 50 of them it was
// a thirtieth (docs/reference/benchmarks.md).
func TestCostOfProbes(t *testing.T) {
	t.Parallel()
	const n = 8
	d := deploy(t)
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("c%02d", i))
		d.rollAs(t, names[i])
	}
	spent := func(j *jobDir) time.Duration {
		cmd := j.start(t)
		if r := j.finish(t, cmd); r.Outcome != jobspec.OutcomeSucceeded {
			t.Fatal(r.Error)
		}
		return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	together := spent(d.probesJob(t, names...))
	var alone time.Duration
	for _, name := range names {
		d.component, d.resourceID = name, "cmp_"+name
		j := d.job(t, jobspec.OperationPlan)
		j.spec.Operation = jobspec.OperationRun
		alone += spent(j)
	}
	t.Logf("%d components: together %s of a processor, alone %s", n, together, alone)
	if together > alone/2 {
		t.Errorf("together they cost %s of a processor, and alone %s", together, alone)
	}
}
