package job

import (
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/weakened"
	"github.com/berth-dev/berth/runner/agent/ending"
	"github.com/berth-dev/berth/runner/agent/order"
)

// lostGrace is what an engine gets whose lease somebody else has: time to
// write down what it knows, not to finish.
const lostGrace = 10 * time.Second

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

// askSwitch reads the customer's switch again.
func (j *job) askSwitch() error {
	state := j.deps.Switch.Read()
	allowed := state.Mode.Job(j.mutates())
	if j.attempt.Tick != nil {
		allowed = state.Mode.Scheduled(order.IsCheck(j.spec, j.attempt.Tick.HealthCheck), j.mutates())
	}
	if allowed || weakened.Is(weakened.Switch) {
		return nil
	}
	outcome, remedy := jobspec.OutcomeNotStarted, ""
	if state.Mode.Claims() { // work goes on, only not of this kind: waiting would not help
		outcome, remedy = jobspec.OutcomeRefused, "ask the customer to set the runner's switch to run"
	}
	text := fmt.Sprintf("the customer's switch is at %s", state.Mode)
	if state.Reason != "" {
		text += " (" + state.Reason + ")"
	}
	return refuse(outcome, remedy, "%s", text)
}

// stop asks the attempt to end. The first reason counts, but a lost lease is
// above all: nothing is reported then.
func (j *job) stop(why ending.Stop) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.stopped != "" && why != ending.Lost {
		return
	}
	j.stopped = why
	if j.engine == nil {
		j.breakOff()
		return
	}
	j.log.Info("engine is asked to stop", "reason", string(why))
	j.engine.Stop(j.grace(why))
}

func (j *job) grace(why ending.Stop) time.Duration {
	if why == ending.Lost {
		return min(lostGrace, j.deps.Engine.Grace)
	}
	return j.deps.Engine.Grace
}

func (j *job) why() ending.Stop {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stopped
}
