package order

import (
	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// Rule is what one kind of work may do. It is the runner's own: neither a spec
// nor an order can widen it.
type Rule struct {
	// Mutates: it may change something in the customer's account. It needs a
	// plan that this runner made, a fence, a nonce, and records in the chain.
	Mutates bool
	// Pinned: it gets only what its plan kept, and no state in addition.
	Pinned bool
	// Artifact: what is deployed is brought to it.
	Artifact bool
	// Leaves: sealed values of the state are opened for it, those that its
	// templates name.
	Leaves bool
	// Script: it runs a text of the vendor's as it stands, which has to be one
	// that was accepted.
	Script bool
	// Starts is how often an engine may be started for one order, at most.
	Starts int
}

type work struct {
	kind      jobspec.Kind
	operation jobspec.Operation
}

// The rules. What is not here is refused.
var (
	ruleBuild  = Rule{Starts: capsule.StartsOfReading}
	rulePlan   = Rule{Artifact: true, Leaves: true, Starts: capsule.StartsOfReading}
	ruleApply  = Rule{Mutates: true, Pinned: true, Artifact: true, Starts: capsule.StartsOfMutation}
	ruleProbe  = Rule{Leaves: true, Starts: capsule.StartsOfReading}
	ruleCheck  = Rule{Leaves: true, Script: true, Starts: capsule.StartsOfReading}
	rulePlanOf = Rule{Leaves: true, Starts: capsule.StartsOfReading}                 // of an action: rendered, not run
	ruleReview = Rule{Starts: capsule.StartsOfReading}                               // of a release: the agent compares it by itself
	ruleAccept = Rule{Mutates: true, Pinned: true, Starts: capsule.StartsOfMutation} // what the runner may run from then on
	ruleAction = Rule{Mutates: true, Pinned: true, Script: true, Starts: capsule.StartsOfMutation}

	rules = map[work]Rule{
		{jobspec.KindTerraformModule, jobspec.OperationBuild}:    ruleBuild,
		{jobspec.KindHelmChart, jobspec.OperationBuild}:          ruleBuild,
		{jobspec.KindKubernetesManifest, jobspec.OperationBuild}: ruleBuild,
		{jobspec.KindContainerImage, jobspec.OperationBuild}:     ruleBuild,

		{jobspec.KindTerraformModule, jobspec.OperationPlan}:    rulePlan,
		{jobspec.KindHelmChart, jobspec.OperationPlan}:          rulePlan,
		{jobspec.KindKubernetesManifest, jobspec.OperationPlan}: rulePlan,
		{jobspec.KindContainerImage, jobspec.OperationPlan}:     rulePlan,
		{jobspec.KindAction, jobspec.OperationPlan}:             rulePlanOf,

		{jobspec.KindTerraformModule, jobspec.OperationApply}:    ruleApply,
		{jobspec.KindHelmChart, jobspec.OperationApply}:          ruleApply,
		{jobspec.KindKubernetesManifest, jobspec.OperationApply}: ruleApply,
		{jobspec.KindAction, jobspec.OperationApply}:             ruleAction,

		{jobspec.KindRelease, jobspec.OperationPlan}:  ruleReview,
		{jobspec.KindRelease, jobspec.OperationApply}: ruleAccept,

		{jobspec.KindHelmChart, jobspec.OperationRun}:          ruleProbe,
		{jobspec.KindKubernetesManifest, jobspec.OperationRun}: ruleProbe,
		{jobspec.KindAction, jobspec.OperationRun}:             ruleCheck,
	}
)

// RuleOf is the rule for a kind of work; known is false for work that no runner
// does.
func RuleOf(kind jobspec.Kind, operation jobspec.Operation) (r Rule, known bool) {
	r, known = rules[work{kind, operation}]
	return r, known
}

// Mutates says whether a job may change something in the customer's account.
// Work that is not known is treated as if it did.
func Mutates(spec jobspec.Spec) bool {
	r, known := RuleOf(spec.Kind, spec.Operation)
	return r.Mutates || !known
}

// IsCheck says whether a scheduled run goes on in a pause: a look by code that is
// built in, or a script that was accepted as a health check.
func IsCheck(spec jobspec.Spec, healthCheck bool) bool {
	rule, known := RuleOf(spec.Kind, spec.Operation)
	switch {
	case !known || rule.Mutates || spec.Operation != jobspec.OperationRun:
		return false
	case !rule.Script:
		return true
	}
	return healthCheck
}
