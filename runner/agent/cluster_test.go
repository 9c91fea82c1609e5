package agent_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// seen is what an engine of a kind on a cluster finds in its directory.
type seen struct {
	Kubeconfig string // contents of what KUBECONFIG names
	Mode       string // of that file
	Registry   string
	Fence      int64
	Previous   string // contents of in/previous/plan
	// Tokens are what the token file of the kubeconfig held: at first, and in an apply
	// after it changed.
	Tokens []string
	// TokenMode is that file's.
	TokenMode string
}

// onCluster is an engine that tells what it was given. The token of its
// kubeconfig goes into the log, where it must not be seen.
func (e testEngine) onCluster() error {
	var s seen
	path := os.Getenv("KUBECONFIG")
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	previous, err := os.ReadFile(filepath.Join(e.dir, "in", "previous", "plan"))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	s = seen{Kubeconfig: string(raw), Mode: info.Mode().String(), Registry: os.Getenv("BERTH_REGISTRY"), Fence: e.spec.Fence, Previous: string(previous)}
	if strings.Contains(s.Kubeconfig, "tokenFile: "+path+"-token") {
		if err := s.watchToken(path+"-token", e.spec.Operation == jobspec.OperationApply); err != nil {
			return err
		}
	}
	report, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(os.Getenv("BERTH_INSTALL_DIR"), "seen-"+e.spec.JobID), report, 0o600); err != nil {
		return err
	}
	fmt.Println("kubeconfig: " + strings.ReplaceAll(string(raw), "\n", " "))
	for _, p := range e.spec.Probes { // all but the last: that one the engine did not come to
		if len(e.result.Looks) == len(e.spec.Probes)-1 {
			break
		}
		look := jobspec.Look{Outcome: jobspec.OutcomeSucceeded, StartedAt: time.Now(), FinishedAt: time.Now()}
		if p.Resource.Name == "api" {
			look.Outcome, look.ExitCode, look.Error = jobspec.OutcomeFailed, 1, "not ready: Deployment shop/api: "+clusterToken
			look.Certificates = []jobspec.Certificate{}
			look.Findings = []jobspec.Finding{{Object: "Deployment shop/api", Condition: "token " + clusterToken}}
		}
		e.result.Looks = append(e.result.Looks, look)
	}
	if e.spec.Operation == jobspec.OperationPlan {
		e.leave("plan.canonical.json", map[string]any{"create": e.spec.Resource.Name})
		e.leave("plan.summary.json", jobspec.PlanSummary{Create: 1})
		e.leave("pinned/plan", map[string]any{"of": e.spec.ChangeID})
	}
	return nil
}

// watchToken reads a token file, and once more after it was renewed.
func (s *seen) watchToken(path string, renewed bool) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	s.TokenMode = info.Mode().String()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if len(s.Tokens) == 0 || s.Tokens[0] != string(raw) {
			s.Tokens = append(s.Tokens, string(raw))
			fmt.Println("token " + string(raw))
		}
		if len(s.Tokens) == 2 || !renewed {
			break
		}
	}
	return nil
}

func (r *runner) seen(job string) (s seen) {
	r.t.Helper()
	raw, err := os.ReadFile(r.file("seen-" + job))
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

const clusterToken = "t0ken-of-the-cluster"

// withCluster starts an agent whose customer gave it a kubeconfig.
func withCluster(r *runner) {
	r.t.Helper()
	kubeconfig := filepath.Join(filepath.Dir(r.dir.Path()), "kubeconfig")
	r.useCluster(kubeconfig, "https://10.0.0.1:6443")
	err := datadir.WriteJSON(r.dir.Config(), map[string]any{"kubeconfig": kubeconfig, "registry_address": "127.0.0.1:5001"})
	if err != nil {
		r.t.Fatal(err)
	}
	r.start()
}

func (r *runner) useCluster(kubeconfig, server string) {
	r.t.Helper()
	text := fmt.Sprintf("current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {token: %s}}]\n", server, clusterToken)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func asManifest(s *jobspec.Spec) {
	s.Kind, s.TerraformModule = jobspec.KindKubernetesManifest, nil
	s.KubernetesManifest = &jobspec.KubernetesManifest{Namespace: "shop"}
	s.Fence = 99 // only the agent says what the fence is
}

func TestJobsOnAClusterGetTheirWayToIt(t *testing.T) {
	t.Parallel()
	c := newChangeOf(t, withCluster, asManifest)
	if !strings.HasPrefix(c.plan.Effect.Target, "cluster:") {
		t.Errorf("target = %q, want the cluster", c.plan.Effect.Target)
	}
	job := c.order(asItIs)
	if result := c.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("result = %+v", result)
	}
	got := c.seen(job)
	if !strings.Contains(got.Kubeconfig, clusterToken) {
		t.Errorf("kubeconfig of the job:\n%s", got.Kubeconfig)
	}
	got.Kubeconfig = ""
	if diff := cmp.Diff(seen{Mode: "-rw-------", Registry: "127.0.0.1:5001", Fence: 5}, got); diff != "" {
		t.Errorf("the engine saw (-want +got):\n%s", diff)
	}
	log := strings.Join(c.plane.log(t, c.plane.streamOf(job)), "\n")
	if strings.Contains(log, clusterToken) || !strings.Contains(log, "https://10.0.0.1:6443") {
		t.Errorf("the log shows the token, or nothing:\n%s", log)
	}
}

// Under the same name there is another cluster now: what was approved for the
// one is not done to the other.
func TestAnOrderIsForOneCluster(t *testing.T) {
	t.Parallel()
	c := newChangeOf(t, withCluster, asManifest)
	c.useCluster(filepath.Join(filepath.Dir(c.dir.Path()), "kubeconfig"), "https://10.0.0.2:6443")
	result := c.plane.result(t, c.order(asItIs))
	if result.Outcome != jobspec.OutcomeRefused || len(result.Differs) != 1 || result.Differs[0].Field != "target" {
		t.Errorf("result = %+v, want it refused because of the target", result)
	}
}

func TestAPlanGetsWhatTheUncertainOnePinned(t *testing.T) {
	t.Parallel()
	c := newChangeOf(t, withCluster, asManifest)
	for _, tc := range []struct {
		name     string
		resource jobspec.Resource
		before   string
		want     string
	}{
		{name: "of the same resource", resource: c.resource, before: c.id, want: `{"of":"` + c.id + `"}`},
		{name: "not that of another resource", resource: jobspec.Resource{ID: id.New(id.Resource), Kind: "component", Name: "web"}, before: c.id},
		{name: "nothing when it is gone", resource: c.resource, before: id.New(id.Change)},
	} {
		spec := c.spec(jobspec.OperationPlan)
		spec.ChangeID, spec.Continues, spec.Resource = id.New(id.Change), tc.before, &tc.resource
		job := c.plane.give(spec)
		if result := c.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
			t.Fatalf("%s: %+v", tc.name, result)
		}
		if got := c.seen(job); got.Previous != tc.want || got.Fence != 0 {
			t.Errorf("%s: the engine saw %q with fence %d, want %q", tc.name, got.Previous, got.Fence, tc.want)
		}
	}
}

func TestWithoutAClusterNothingIsStarted(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.start()
	spec := jobspec.Spec{
		Operation: jobspec.OperationPlan, ChangeID: id.New(id.Change),
		Resource: &jobspec.Resource{ID: id.New(id.Resource), Kind: "component", Name: "api"},
		Artifact: &jobspec.Artifact{Repository: "org/shop/api", Digest: "sha256:" + strings.Repeat("0", 64)},
	}
	asManifest(&spec)
	result := r.plane.result(t, r.plane.give(spec))
	if result.Outcome != jobspec.OutcomeFailed || !strings.Contains(result.Error, "no cluster") || !strings.Contains(result.Remedy, "--kubeconfig") {
		t.Errorf("result = %+v, want a failure that says how to give it a cluster", result)
	}
}

// Scripts get the way to the cluster as well, unless all of them do without.
func TestScriptsGetTheirWayToTheCluster(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	withCluster(r)
	for _, without := range []bool{false, true} {
		spec := script("env")
		spec.Action.Steps[0].NoKubeConfig = without
		job := r.plane.give(spec)
		if result := r.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
			t.Fatalf("result = %+v", result)
		}
		log := strings.Join(r.plane.log(t, r.plane.streamOf(job)), "\n")
		if has := strings.Contains(log, "env KUBECONFIG"); has == without {
			t.Errorf("no_kube_config %v: the script's environment has KUBECONFIG: %v\n%s", without, has, log)
		}
	}
}
