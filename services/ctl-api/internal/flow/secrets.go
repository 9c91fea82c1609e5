package flow

import (
	"strings"

	"github.com/berth-dev/berth/services/internal/fault"
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

// copiesName is what the copies of secrets are called, where components have names;
// syncStep is the step that makes them.
const (
	copiesName = "secrets"
	syncStep   = "secrets-sync"
)

// syncSecrets appends the sync of secrets to the install's cluster, between the actions of
// its points: after the sandbox, which may make the cluster, and before the components,
// which read the copies. A release that no longer has copies takes away what is there.
func (p *planner) syncSecrets() {
	p.hooks("pre-secrets-sync")
	if p.in.Copies || p.in.CopiesMade {
		reason := "secrets are copied to the cluster before components read them there"
		if !p.in.Copies {
			reason = "the release copies no secret to the cluster any more"
		}
		p.add(PlannedStep{Name: syncStep, Kind: StepDeploy, Resource: copiesName, Copies: true, Reason: reason})
	}
	p.hooks("post-secrets-sync")
}

// syncSecretsIfAny is syncSecrets for workflows that are not about the whole install: one
// without copies has no such point.
func (p *planner) syncSecretsIfAny() {
	if p.in.Copies || p.in.CopiesMade {
		p.syncSecrets()
	}
}

// syncSecretsAlone is a workflow that does nothing else: after a rotation.
func (p *planner) syncSecretsAlone() error {
	p.runner()
	p.accept()
	if !p.in.Copies && !p.in.CopiesMade {
		return fault.With(fault.Newf(fault.ErrInvalid, "the release of install %s copies no secret to a cluster", p.in.Install), fault.Code("nothing_to_sync"),
			fault.Remedy("declare it with kubernetes_sync or kubernetes_sync_targets in secrets.toml, and deploy that release"))
	}
	p.secrets()
	p.syncSecrets()
	return nil
}

// removeCopies appends the removal of the copies of secrets, if there are any.
func (p *planner) removeCopies() {
	if p.in.CopiesMade {
		p.add(PlannedStep{Name: syncStep, Kind: StepTeardown, Resource: copiesName, Copies: true, Reason: "secrets were copied to the cluster"})
	}
}
