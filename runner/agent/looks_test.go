package agent_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/schedule"
)

func probeOf(name string, cluster *jobspec.Cluster) jobspec.Scheduled {
	return jobspec.Scheduled{
		Probe: &jobspec.Probe{Kind: jobspec.KindKubernetesManifest, Resource: jobspec.Resource{ID: id.New(id.Resource), Kind: "component", Name: name},
			Work: jobspec.Work{KubernetesManifest: &jobspec.KubernetesManifest{Namespace: "shop", Cluster: cluster}}},
		Cron: "* * * * *", TimeoutSeconds: 30, HealthCheck: true,
	}
}

// All probes of one cluster are looked at by one engine, and each is a run of its own: with
// its own outcome, without secrets, and failed when the engine did not come to it.
func TestProbesAreLookedAtTogether(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	elsewhere := &jobspec.Cluster{Context: "west", Component: "cluster"}
	r.publish(1, probeOf("web", nil), probeOf("api", nil), probeOf("late", nil), probeOf("far", elsewhere))
	minutely, err := schedule.Parse("* * * * *")
	if err != nil {
		t.Fatal(err)
	}
	at := schedule.Spread(minutely, r.plane.installID).Next(minute("10:00:00"))
	r.clock = at.Add(-6 * time.Second)
	withCluster(r)
	end := func(name string) (end jobspec.Run) {
		t.Helper()
		r.plane.until(t, "the run of "+name, func() bool {
			for _, run := range r.plane.runs[jobspec.RunKey("component/"+name, at)] {
				if run.State == "succeeded" || run.State == "failed" || run.State == "missed" {
					end = run
					return true
				}
			}
			return false
		})
		return end
	}
	// By name; the engine of this test leaves out the last.
	for name, want := range map[string]string{"api": "failed not ready: Deployment shop/api: ", "late": "succeeded", "web": "failed the engine said nothing of it"} {
		run := end(name)
		if got := strings.TrimSpace(run.State + " " + run.Error); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if raw, err := json.Marshal(run); err != nil || strings.Contains(string(raw), clusterToken) {
			t.Errorf("%s shows the token: %s, %v", name, raw, err)
		}
	}
	if _, has := end("api").Outputs[jobspec.FindingsOutput]; !has {
		t.Errorf("api was reported without its findings: %+v", end("api"))
	}
	if seen := end("api").Outputs[jobspec.CertificatesOutput]; seen == nil {
		t.Errorf("api was reported without its certificates: %+v", end("api"))
	}
	if _, has := end("late").Outputs[jobspec.CertificatesOutput]; has {
		t.Errorf("late did not look for certificates, and was reported with some: %+v", end("late"))
	}
	if run := end("far"); run.State != "failed" {
		t.Errorf("the probe of another cluster: %+v", run)
	}
	engines, err := filepath.Glob(r.file("seen-*"))
	if err != nil || len(engines) != 1 {
		t.Errorf("%d engines looked, want 1: %v, %v", len(engines), engines, err)
	}
}
