package engine_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/drift"
	"github.com/berth-dev/berth/runner/engine/helm"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
	"github.com/berth-dev/berth/runner/engine/manifest"
	"github.com/berth-dev/berth/runner/engine/survey"
)

// drifted surveys the objects of a job's component. Nothing but reads and dry
// runs may reach the cluster: all requests are recorded.
func drifted(t *testing.T, d *deployed, dir *jobDir) drift.Report {
	t.Helper()
	c, err := kube.Open(t.Context(), d.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	var sent recorder
	config := rest.CopyConfig(c.Config)
	config.Wrap(sent.around)
	c.Config = config
	if c, err = c.ReadOnly(); err != nil {
		t.Fatal(err)
	}
	objects := map[jobspec.Kind]func() (survey.Objects, error){
		jobspec.KindHelmChart:          func() (survey.Objects, error) { return helm.Objects(t.Context(), asJob(dir), c) },
		jobspec.KindKubernetesManifest: func() (survey.Objects, error) { return manifest.Objects(t.Context(), asJob(dir), c) },
	}
	found, err := objects[dir.spec.Kind]()
	if err != nil {
		t.Fatal(err)
	}
	report, err := survey.Look(t.Context(), c, found, drift.Secrets{Key: []byte("key")})
	if err != nil {
		t.Fatal(err)
	}
	sent.check(t)
	return report
}

func asJob(dir *jobDir) *job.Job { return &job.Job{Dir: dir.path, Spec: dir.spec, Env: dir.env} }

// recorder notes the requests that pass.
type recorder struct {
	inner http.RoundTripper
	mu    *sync.Mutex
	lines *[]string
}

func (r *recorder) around(inner http.RoundTripper) http.RoundTripper {
	if r.mu == nil {
		r.mu, r.lines = &sync.Mutex{}, &[]string{}
	}
	return recorder{inner, r.mu, r.lines}
}

func (r recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	*r.lines = append(*r.lines, fmt.Sprintf("%s %s", request.Method, request.URL))
	r.mu.Unlock()
	return r.inner.RoundTrip(request)
}

func (r recorder) check(t *testing.T) {
	t.Helper()
	if len(*r.lines) == 0 {
		t.Error("no request was recorded")
	}
	for _, line := range *r.lines {
		if !strings.HasPrefix(line, "GET ") && !(strings.HasPrefix(line, "PATCH ") && strings.Contains(line, "dryRun=All")) {
			t.Errorf("a survey sent %s", line)
		}
	}
}

// alerts are the lines of a report about what alerts.
func alerts(d *deployed, report drift.Report) []string {
	var lines []string
	for _, line := range report.Lines(100) {
		if strings.HasPrefix(line, "differences that do not alert") {
			continue
		}
		line, _, _ = strings.Cut(line, ", 20") // the time
		lines = append(lines, strings.ReplaceAll(line, d.namespace, "NS"))
	}
	return lines
}
