package action

import (
	"fmt"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/exposition"
	"github.com/berth-dev/berth/runner/engine/job"
)

// metricsPath is the file that the script with number i may write numbers to. It is
// there only when the script makes it, next to the outputs.
func (s shell) metricsPath(i int) string { return s.job.Work("outputs", fmt.Sprintf("%02d.prom", i+1)) }

// numbers are what the scripts of a run wrote to their metrics files. What is wrong with
// them fails nothing: they are about the work, not part of it.
type numbers struct {
	job      *job.Job
	metrics  []jobspec.Metric
	problems []string
}

// take reads what a script wrote, also one that failed.
func (n *numbers) take(step, path string) {
	text := exposition.ReadFile(path)
	metrics, problems := jobspec.KeepMetrics(text.Metrics)
	n.metrics = append(n.metrics, metrics...)
	if said := jobspec.SayProblems(append(text.Problems, problems...)); said != "" {
		n.problems = append(n.problems, fmt.Sprintf("step %q: %s", step, said))
		n.job.Logf("metrics of step %q: %s", step, said)
	}
	if text.Timed {
		n.job.Logf("metrics of step %q: times in the file are not used, a number is of the run that wrote it", step)
	}
}

// kept are the numbers of all scripts so far, where a later one wins, and what was left
// out.
func (n *numbers) kept() (metrics []jobspec.Metric, problem string) {
	metrics, problems := jobspec.KeepMetrics(n.metrics)
	return metrics, jobspec.SayProblems(append(problems, n.problems...))
}
