package flow

import (
	"fmt"
	"strings"
	"time"

	"github.com/berth-dev/berth/services/internal/model"
)

// Hold is why a change is not carried out now, although it was approved: for all changes
// of an install a freeze, or the vendor's pause; for that of an action its role, which is
// off; for any the customer, who has not agreed to it. Plans and checks go on.
type Hold struct {
	Reason model.WaitReason // freeze, paused_by_vendor, role_off, role_unknown or consent
	On     string           // the freeze, who paused it, the role, or the customer
	// Until is when it ends by itself; zero for all but a freeze.
	Until time.Time
	Text  string // for people
}

// next has an approved change wait for the end of a hold. A freeze has one: the engine
// looks then. After a month of anything else the plan is too old.
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
		return Decision{Do: DoSettleChange, ChangeState: model.ChangeStale, Error: h.tooLong()}
	case !now.Before(step.WaitRetryAt):
		wait.Deadline = step.WaitDeadline
		return Decision{Do: DoLookAgain, Wait: wait}
	}
	return Decision{}
}

// tooLong says that a plan became too old meanwhile.
func (h Hold) tooLong() string {
	days := int(PauseTime.Hours() / 24)
	switch h.Reason {
	case model.WaitPaused:
		return fmt.Sprintf("it waited %d days in a paused install", days)
	case model.WaitConsent:
		return fmt.Sprintf("it waited %d days for the customer's consent", days)
	}
	return fmt.Sprintf("it waited %d days for role %s", days, h.On)
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
