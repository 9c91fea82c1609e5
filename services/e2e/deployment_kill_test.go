package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

const (
	replaceTimeout = 2 * time.Minute // a pod ends, another one is ready, on a busy machine
	podLines       = 100             // of a component's log, ten per second
)

// TestDeploymentPods deletes a pod of each service during one deploy, in an order
// and in a manner that follow from BERTH_FAULTS_SEED. The deploy succeeds at its
// first try, who watches it sees its end, nothing is done twice, and no line of a
// log is missing.
func TestDeploymentPods(t *testing.T) {
	t.Parallel()
	if os.Getenv("BERTH_E2E_DEPLOYMENT") == "" {
		t.Skip("kubernetes: BERTH_E2E_DEPLOYMENT names no deployment; make test has one where it can")
	}
	s := start(t)
	in := s.probe("acme")
	for _, name := range []string{"one", "two", "three"} {
		edit(t, filepath.Join(in.app, "components", name+".toml"), `lines  = "20"`, fmt.Sprintf("lines  = \"%d\"", podLines))
	}
	edit(t, filepath.Join(in.app, "components", "two.toml"), `value  = "v1"`, `value  = "v2"`)
	in.change("v2")
	before := in.effects()

	seed := uint64(number(t, "BERTH_FAULTS_SEED", 1))
	rng := rand.New(rand.NewPCG(seed, 0))
	services := []string{"ctl-api", "runner-api", "log-ingest", "front", "builder"}
	rng.Shuffle(len(services), func(i, j int) { services[i], services[j] = services[j], services[i] })
	watched := s.watch("deploy", in.name, "--auto-approve", "--watch")
	began := time.Now()
	for i, service := range services {
		if i == 1 { // the first one goes while it is planned
			in.sinceEffect("begin one v2")
		}
		gently := rng.IntN(2) == 0
		t.Logf("seed %d, after %s: %s, gently: %t", seed, time.Since(began).Round(time.Second/10), service, gently)
		s.replacePod(service, gently)
	}

	id := s.newestWorkflow(in.name)
	w := in.finished(id, replaceTimeout)
	if w.State != "succeeded" {
		t.Fatalf("deploy: %s: %s\n%s", w.State, in.explain(w), watched)
	}
	t.Logf("the deploy took %s", time.Since(began).Round(time.Second/10))
	want := []string{
		"begin one v2", "begin three after v2", "begin two v2", "end one v2", "end three after v2", "end two v2",
		"gone one v1", "gone three after v1", "gone two v1",
	}
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(in.effects()[len(before):]))); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
	if unsure := in.changes("uncertain"); len(unsure) > 0 {
		t.Errorf("uncertain changes: %+v", unsure)
	}
	in.wholeLogs(w)
}

// replacePod deletes a pod of a service, gently or as a lost node does, and waits
// until the service has all its replicas again.
func (s *system) replacePod(service string, gently bool) {
	s.t.Helper()
	selector := []string{"get", "pods", "--selector", "app.kubernetes.io/name=" + service, "--output", "jsonpath={range .items[*]}{.metadata.name}{\"\\n\"}{end}"}
	pod, _, _ := strings.Cut(s.inBerth(selector...), "\n")
	remove := []string{"delete", "pod", pod, "--wait=false"}
	if !gently {
		remove = append(remove, "--force", "--grace-period", "0")
	}
	s.inBerth(remove...)
	s.eventually(replaceTimeout, service+" has its replicas again", func() error {
		have := s.inBerth("get", "deployment", service, "--output", "jsonpath={.status.availableReplicas} of {.spec.replicas}")
		if available, wanted, _ := strings.Cut(have, " of "); available != wanted || slices.Contains(strings.Fields(s.inBerth(selector...)), pod) {
			return fmt.Errorf("%s are available", have)
		}
		return nil
	})
}

// wholeLogs checks that the logs of what a workflow applied have all lines, each
// once.
func (in *install) wholeLogs(w ctlapi.Workflow) {
	in.t.Helper()
	for name, value := range map[string]string{"one": "v2", "two": "v2", "three": "after v2"} {
		summary := step(w, "component/"+name).Change
		if summary == nil {
			in.t.Errorf("%s has no change: %s", name, in.explain(w))
			continue
		}
		pattern := regexp.MustCompile(regexp.QuoteMeta(name+" "+value+" line ") + `(\d+ of \d+)$`)
		var c ctlapi.Change
		in.get("/changes/"+summary.ID, &c)
		var got, want []string
		for _, stream := range streams(c) {
			lines, complete := in.log(stream)
			if !complete {
				in.t.Errorf("%s: stream %s is not complete", name, stream)
			}
			for _, line := range lines {
				if numbered := pattern.FindStringSubmatch(line); numbered != nil {
					got = append(got, numbered[1])
				}
			}
		}
		for i := range podLines {
			want = append(want, fmt.Sprintf("%d of %d", i+1, podLines))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			in.t.Errorf("log of %s (-want +got):\n%s", name, diff)
		}
	}
}
