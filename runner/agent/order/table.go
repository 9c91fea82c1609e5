package order

import (
	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// Rule is what one kind of work may do. It is the runner's own: neither a spec
// nor an order can widen it.
type Rule struct {
	// Mutates: it may change something in the customer's account. It needs records
	// in the chain and, unless it is Own, a plan that this runner made, a fence and a
	// nonce.
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
	// Own: the runner does it by its own schedule. No order can ask for it.
	Own bool
	// Starts is how often an engine may be started for one order, at most.
	Starts int
}

type work struct {
	kind      jobspec.Kind
	operation jobspec.Operation
}

// The rules. Work that has none is refused.
var (
	// ofComponents are the rules for all types of components, and for their rehearsal.
	ofComponents = map[jobspec.Operation]Rule{
		jobspec.OperationBuild: {Starts: capsule.StartsOfReading},
		jobspec.OperationPlan:  {Artifact: true, Leaves: true, Starts: capsule.StartsOfReading},
		jobspec.OperationApply: {Mutates: true, Pinned: true, Artifact: true, Starts: capsule.StartsOfMutation},
		jobspec.OperationRun:   {Leaves: true, Starts: capsule.StartsOfReading}, // a probe
		jobspec.OperationDrift: {Leaves: true, Own: true},
	}

	ofOthers = map[work]Rule{
		// An action is rendered by its plan, not run.
		{jobspec.KindAction, jobspec.OperationPlan}:  {Leaves: true, Starts: capsule.StartsOfReading},
		{jobspec.KindAction, jobspec.OperationApply}: {Mutates: true, Pinned: true, Script: true, Starts: capsule.StartsOfMutation},
		{jobspec.KindAction, jobspec.OperationRun}:   {Leaves: true, Script: true, Starts: capsule.StartsOfReading}, // a check
		// It needs neither plan nor fence: the acceptance of its script was the decision.
		{jobspec.KindAction, jobspec.OperationTick}: {Mutates: true, Leaves: true, Script: true, Own: true},
		// Looks at objects, by the runner's own schedule.
		{jobspec.KindProbes, jobspec.OperationRun}:    {Leaves: true, Own: true},
		{jobspec.KindScripts, jobspec.OperationBuild}: {Starts: capsule.StartsOfReading},
		// What the runner may run is decided by the apply of a release.
		{jobspec.KindRelease, jobspec.OperationPlan}:  {Starts: capsule.StartsOfReading},
		{jobspec.KindRelease, jobspec.OperationApply}: {Mutates: true, Pinned: true, Starts: capsule.StartsOfMutation},
		// Which version of itself the runner runs.
		{jobspec.KindRunnerUpdate, jobspec.OperationPlan}:  {Starts: capsule.StartsOfReading},
		{jobspec.KindRunnerUpdate, jobspec.OperationApply}: {Mutates: true, Pinned: true, Starts: capsule.StartsOfMutation},
	}
)

// RuleOf is the rule for a kind of work; known is false for work that no runner
// does. Which operations a kind has is said by jobspec.Kinds.
func RuleOf(kind jobspec.Kind, operation jobspec.Operation) (r Rule, known bool) {
	info := jobspec.Kinds[kind]
	switch {
	case !info.Has(operation):
		return Rule{}, false
	case info.Component || info.Resource:
		r, known = ofComponents[operation]
		if info.HasState && operation == jobspec.OperationDrift { // it gets what the plan of the live change rendered
			r.Leaves, r.Artifact = false, true
		}
	default:
		r, known = ofOthers[work{kind, operation}]
	}
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
