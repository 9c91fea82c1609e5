package agent_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// notOfOneJob are requests whose number depends on how long a job takes, or that are
// held open.
var notOfOneJob = []string{"POST /jobs/claim", "POST /leases/renew", "GET /settings", "POST /sessions", "POST /enrol", "POST /chain", "GET /chain/head", "POST /streams/{stream}/records"}

// spent is what a job took since the last call: each start of Terraform by its command,
// and each request by its route.
func (c *change) spent(job string, before map[string]int) (starts []string, requests map[string]int) {
	c.t.Helper()
	c.gone(job)
	log := filepath.Join(c.dir.Install(), "starts")
	raw, err := os.ReadFile(log)
	if err == nil {
		err = os.Remove(log)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.plane.mu.Lock()
	defer c.plane.mu.Unlock()
	requests = map[string]int{}
	for route, n := range c.plane.served {
		if n -= before[route]; n > 0 && !slices.Contains(notOfOneJob, route) {
			requests[route] = n
		}
	}
	return strings.Fields(string(raw)), requests
}

func (p *plane) counted() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.served)
}

// What a deploy of a component costs, counted instead of timed: who adds a start of
// Terraform or a request to each job changes this table, and says so.
func TestWhatAJobStartsAndAsks(t *testing.T) {
	t.Parallel()
	path, version := terraformHere(t)
	settings := map[string]any{}
	r, _ := newTerraformRunner(t, settings)
	counting := filepath.Join(filepath.Dir(r.binary), "terraform")
	script := fmt.Sprintf("#!/bin/sh\n[ -z \"$BERTH_INSTALL_DIR\" ] || echo \"$1\" >>\"$BERTH_INSTALL_DIR/starts\"\nexec %s \"$@\"\n", path)
	if err := os.WriteFile(counting, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	settings["terraform"] = counting
	if err := datadir.WriteJSON(r.dir.Config(), settings); err != nil {
		t.Fatal(err)
	}
	c := newTerraformChange(t, r, func(r *runner) { r.start() }, version)
	for job := range c.plane.plans {
		c.spent(job, nil) // the first init of a resource
	}

	before := c.plane.counted()
	job := c.order(asItIs)
	if result := c.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("apply: %+v", result)
	}
	starts, requests := c.spent(job, before)
	if diff := cmp.Diff([]string{"apply"}, starts); diff != "" {
		t.Errorf("an apply starts Terraform (-want +got):\n%s", diff)
	}
	want := map[string]int{
		"PUT /jobs/{job}/result": 1, "POST /streams/{stream}/finish": 1,
		"POST /states/{resource}/lock": 1, "DELETE /states/{resource}/lock": 1, "PUT /states/{resource}": 1,
		"GET /states/{resource}": 3, // one for the judge of the order, two for Terraform
	}
	if diff := cmp.Diff(want, requests); diff != "" {
		t.Errorf("an apply asks (-want +got):\n%s", diff)
	}

	before = c.plane.counted()
	spec := c.spec(jobspec.OperationPlan)
	job = c.plane.give(spec)
	if result := c.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded || !result.NoChange {
		t.Fatalf("plan: %+v", result)
	}
	starts, requests = c.spent(job, before)
	if diff := cmp.Diff([]string{"plan", "show"}, starts); diff != "" {
		t.Errorf("a plan of an unchanged module starts Terraform (-want +got):\n%s", diff)
	}
	want = map[string]int{
		"PUT /jobs/{job}/plan": 1, "PUT /jobs/{job}/result": 1, "POST /streams/{stream}/finish": 1,
		"GET /states/{resource}": 1,
	}
	if diff := cmp.Diff(want, requests); diff != "" {
		t.Errorf("a plan of an unchanged module asks (-want +got):\n%s", diff)
	}
}
