package job

import "github.com/berth-dev/berth/pkg/jobspec"

// askStopped refuses a job that changes something while the record of what was
// done, or who holds the runner's key, is in doubt. Nothing of its order is used
// up.
func (j *job) askStopped() error {
	if !j.mutates() || j.deps.Stopped == nil {
		return nil
	}
	if why, remedy := j.deps.Stopped(); why != "" {
		return refuse(jobspec.OutcomeRefused, remedy, "%s", why)
	}
	return nil
}
