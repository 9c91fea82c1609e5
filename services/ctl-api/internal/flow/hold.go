package flow

import (
	"fmt"
	"strings"
	"time"

	"github.com/berth-dev/berth/services/internal/model"
)

// Hold is why no change of an install is carried out now, although it was approved:
// a freeze, or the vendor's pause. Plans and checks go on.
type Hold struct {
	Reason model.WaitReason // freeze or paused_by_vendor
	On     string           // the freeze, or who paused it
	// Until is when it ends by itself; zero for a pause.
	Until time.Time
	Text  string // for people
}

// next has an approved change wait for the end of a hold. A freeze has one: the engine
// looks then. After a pause of a month the plan is too old.
func (h Hold) next(now time.Time, step Step) Decision {
	wait := Wait{Reason: h.Reason, On: h.On, Deadline: h.Until, RetryAt: h.Until}
	waits := step.State == model.StepWaiting && step.WaitReason == h.Reason && step.WaitOn == h.On
	if h.Until.IsZero() {
		wait.Deadline, wait.RetryAt = now.Add(PauseTime), now.Add(lockRetry)
	} else {
		waits = waits && step.WaitDeadline.Equal(h.Until)
	}
	switch {
	case !waits:
		return Decision{Do: DoWaitStep, Wait: wait}
	case !now.Before(step.WaitDeadline):
		return Decision{Do: DoSettleChange, ChangeState: model.ChangeStale, Error: fmt.Sprintf("it waited %d days in a paused install", int(PauseTime.Hours()/24))}
	case !now.Before(step.WaitRetryAt):
		wait.Deadline = step.WaitDeadline
		return Decision{Do: DoLookAgain, Wait: wait}
	}
	return Decision{}
}

// reopen has an approved change be decided on again, as approvals of it do not count
// any more.
func reopen(c *Change) Decision {
	text := fmt.Sprintf("approvals are missing: %d", c.Missing)
	if len(c.Void) > 0 {
		text = "an approval does not count any more: " + strings.Join(c.Void, ", ")
	}
	return Decision{Do: DoReopen, Error: text, Wait: Wait{Reason: model.WaitDecision, On: c.ID, Deadline: c.ReopenedUntil}}
}
