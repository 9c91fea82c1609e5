package engine_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// manifestJob is a Job of two containers: one says something, as Go programs can,
// and ends soon and well, the other does as its command.
func manifestJob(name, command string) string {
	return `
apiVersion: batch/v1
kind: Job
metadata: {name: ` + name + `}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers:
      - {name: ends, image: ` + pauseImage + `, env: [{name: GODEBUG, value: inittrace=1}], livenessProbe: ` + endsSoon + `}
      - {name: does, image: ` + pauseImage + `, livenessProbe: ` + endsSoon + command + `}
---
`
}

// TestManifestWaitsForJobs holds that an apply ends when its Job has completed, and
// fails when that has failed, with what its pod says last.
func TestManifestWaitsForJobs(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	d.roll(t, manifestJob("good", ""))
	status, _ := d.get(t, "Job/good").Object["status"].(map[string]any)
	if status["succeeded"] != int64(1) {
		t.Errorf("the apply ended before the Job: %v", status)
	}

	plan, _ := d.plan(t, manifestJob("good", "")+manifestJob("bad", ", command: [/not-there]"))
	apply := d.applyJob(t, plan)
	r := apply.run(t)
	if r.Outcome != jobspec.OutcomeFailed {
		t.Fatalf("the apply with a Job that fails: %s %s", r.Outcome, r.Error)
	}
	wantContains(t, "error", r.Error, "Job/bad: Job Failed. failed: 1/1")
	wantContains(t, "error", r.Error, "container does ended with exit code 128")
	wantContains(t, "log", apply.log(t), "container ends: init ")
	if strings.Contains(r.Error, "Job/good") {
		t.Errorf("the Job that completed is said to have failed: %s", r.Error)
	}
}
