package flow

import (
	"strings"

	"github.com/berth-dev/berth/services/internal/model"
)

// awaitSecrets is the step that ends when every secret that the release needs has a value.
func awaitSecrets(s State, step Step) (Decision, bool) {
	missing := strings.Join(s.MissingSecrets, ", ")
	switch waits := step.State == model.StepWaiting && step.WaitReason == model.WaitSecret; {
	case missing == "":
		return Decision{Do: DoSucceedStep}, true
	case !waits:
		return Decision{Do: DoWaitStep, Wait: Wait{Reason: model.WaitSecret, On: "customer", Deadline: s.Now.Add(SecretTime)}}, true
	case !s.Now.Before(step.WaitDeadline):
		return Decision{Do: DoFailStep, Error: "the customer set no value in time: " + missing,
			Remedy: "ask the customer to run `berth-runner secrets set NAME`, then retry the step"}, true
	}
	return Decision{}, false
}
