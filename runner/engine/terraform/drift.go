package terraform

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/drift"
	"github.com/berth-dev/berth/runner/engine/job"
)

// maxDriftLines is how many resources the log of a look names.
const maxDriftLines = 50

// Drift looks how what a module made differs from its state: a plan with everything that
// the plan of the live change was made with, in in/live, which nobody applies. The agent
// gives it the live state, and takes none. What Terraform says stays out of the log: it
// would show more than the report does.
func Drift(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	var in inputs
	err := job.ReadJSON(j.In("live", inputsFile), &in)
	if errors.Is(err, fs.ErrNotExist) {
		return jobspec.Result{}, job.Failf("",
			"what change %s was planned with is not kept here: an older runner planned it; looks work again after the next deploy", j.Spec.Drift.Change)
	}
	if err != nil {
		return jobspec.Result{}, err
	}
	if _, err := os.Stat(j.In("live", rehearsedFile)); err == nil {
		return jobspec.Result{}, job.Failf("", "change %s was a rehearsal: what stood in for the module is in no cloud", j.Spec.Drift.Change)
	}
	w, err := open(ctx, j, in.EnvVars, nil)
	if err != nil {
		return jobspec.Result{}, err
	}
	result := jobspec.Result{Tool: w.tool()}
	if err := w.restore(j.In("live")); err != nil {
		return result, err
	}
	varFiles, err := in.write(j.Work("vars"))
	if err != nil {
		return result, err
	}
	if err := w.init(ctx, j); err != nil {
		return result, err
	}
	w.quiet = true
	if _, err := w.plan(ctx, j, varFiles); err != nil {
		return result, err
	}
	plan, _, err := w.show(ctx, j)
	if err != nil {
		return result, err
	}
	report := drifted(plan).Accept(drift.RulesOf(j), time.Now().UTC())
	for _, line := range report.Lines(maxDriftLines) {
		j.Logf("%s", line)
	}
	found := report.Result(j.Spec.Drift.Change)
	if found.Class == "" {
		j.Logf("none of the %d resources of %s has drifted", found.Looked, j.Subject())
	}
	result.Drift = &found
	return result, nil
}
