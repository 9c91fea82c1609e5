package job

import "github.com/berth-dev/berth/pkg/jobspec"

// stoppedRemedy is what the customer can do; the reason says which it is.
const stoppedRemedy = "the customer decides on the runner's machine: see `berth-runner status`, then `berth-runner chain restore`, " +
	"or `berth-runner chain accept --reason TEXT`"

// askStopped refuses a job that changes something while the record of what was
// done is in doubt. Nothing of its order is used up.
func (j *job) askStopped() error {
	if !j.mutates() || j.deps.Stopped == nil {
		return nil
	}
	if why := j.deps.Stopped(); why != "" {
		return refuse(jobspec.OutcomeRefused, stoppedRemedy, "%s", why)
	}
	return nil
}
