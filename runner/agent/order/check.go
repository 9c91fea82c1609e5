// Package order decides which of its orders the runner obeys.
//
// Each job comes with an order, signed by a key that the customer's side pinned.
// The signature alone proves nothing against a control plane that was taken
// over, so everything in it is compared with what the runner finds out by
// itself: its own table of work, the bytes of the spec, what it has begun
// before, and for work that changes something its own record of the plan, the
// bytes in its own registry, the executables, the present state, the fences and
// nonces that it has seen. Each field that stands against it is named.
//
//	order ──▶ Verify ──▶ Judge(keys, order, Facts) ──▶ obey | refused | stale
//	                         ▲                 │ it mutates
//	    table, spec, ledger ─┘                 ▼
//	    plan record, digests, state ──▶ JudgeEffect(order, EffectFacts)
package order

import (
	"slices"
	"strconv"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/footprint"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/agent/guardrail"
)

// Record is what the runner wrote down about a plan that it made. An apply is
// judged by it, not by what the control plane says was planned.
type Record struct {
	ChangeID string `json:"change_id"`
	JobID    string `json:"job_id"`
	// OriginID is what the order to plan said: an apply under another origin
	// could bring the same effect about again.
	OriginID string `json:"origin_id,omitempty"`
	// Effect is all that the plan does; EffectDigest is its digest.
	Effect capsule.Effect `json:"effect"`
	// Config is the digest of what the app folder says of what was planned
	// (jobspec.Spec.Config), "" where it says nothing.
	Config       string `json:"config,omitempty"`
	EffectDigest string `json:"effect_digest"`
	// Pinned is the digest of the sealed bytes that an apply needs, Blob names
	// the artifact in the own registry that holds them. Both are empty when the
	// plan changes nothing.
	Pinned string `json:"pinned,omitempty"`
	Blob   string `json:"blob,omitempty"`
	// Wanted is the artifact that holds what the engine pinned for a plan that changes
	// nothing. Nobody can apply it: it says what is live, for looks for drift.
	Wanted string `json:"wanted,omitempty"`
	// Image is the one of the canonical plan that an action's steps run in, "" for
	// none.
	Image string `json:"image,omitempty"`
	// Hidden are the texts that were opened for the plan, sealed again: an apply
	// gets no state, and its log must not show them.
	Hidden []byte `json:"hidden,omitempty"`
	// Kubeconfig is the access that the agent made of the outputs of a component for
	// the plan (a kubeconfig, or the name of a cloud's cluster), sealed: an apply gets no state. Empty for a cluster that the
	// customer's own files open.
	Kubeconfig []byte `json:"kubeconfig,omitempty"`

	// Footprint is what the plan newly needs and exposes, without secrets; nil when there was
	// nothing to say.
	Footprint *footprint.Footprint `json:"footprint,omitempty"`
	// Judgement is what the rules of both sides said of the plan, without secrets; nil when
	// there were none.
	Judgement *policy.Judgement `json:"judgement,omitempty"`
	// Timed: some of these rules look at the clock, so they are asked again.
	Timed bool `json:"timed,omitempty"`
	// Kinds are those of objects that who agrees to the plan is not asked about again.
	Kinds []guardrail.Kind `json:"kinds,omitempty"`

	PlannedAt time.Time `json:"planned_at"`
}

// Answer is what the customer's guardrails made of the plan.
func (r Record) Answer() policy.Answer {
	if r.Judgement == nil {
		return policy.Allow
	}
	return r.Judgement.Answer
}

// EffectFacts are what the runner knows of an effect that it is ordered to bring
// about.
type EffectFacts struct {
	Spec jobspec.Spec
	// Fence came with the assignment, nil when none did.
	Fence *int64
	// HighestFence is the highest that was ever seen for the resource.
	HighestFence int64
	// Planned is the own record of the change, nil when there is none.
	Planned *Record
	// Effect is the planned one with everything that can be found out again
	// filled in again.
	Effect capsule.Effect
	// PinnedDigest is that of the sealed bytes as they are now in the own
	// registry; empty when they are gone.
	PinnedDigest string
	// ArtifactProblem says what is wrong with the artifact's bytes, "" if
	// nothing is.
	ArtifactProblem string
}

// JudgeEffect compares an order that Judge let pass, and that mutates, with what
// the runner planned.
func JudgeEffect(o capsule.Order, f EffectFacts) Verdict {
	differs := checkEffect(o, f)
	v := Verdict{Differs: differs, Order: o}
	switch {
	case len(differs) == 0:
	case onlyMoved(differs):
		v.Outcome = jobspec.OutcomeStale
	default:
		v.Outcome = jobspec.OutcomeRefused
	}
	return v
}

func checkEffect(o capsule.Order, f EffectFacts) []jobspec.Difference {
	d := &differences{}
	fence := strconv.FormatInt(o.Fence, 10)
	switch {
	case f.Fence == nil:
		d.add(true, "fence", "the grant on the resource", "none")
	case *f.Fence != o.Fence:
		d.add(true, "fence", strconv.FormatInt(*f.Fence, 10), fence)
	case o.Fence < f.HighestFence:
		d.add(true, "fence", "at least "+strconv.FormatInt(f.HighestFence, 10), fence)
	}
	d.add(f.ArtifactProblem != "", "artifact_digest", "the bytes of the digest", f.ArtifactProblem)
	d.add(o.PlanBytesDigest != f.PinnedDigest, "plan_bytes_digest", f.PinnedDigest, o.PlanBytesDigest)
	if f.Planned == nil {
		d.add(true, "plan", "a plan that this runner made", "none for change "+f.Spec.ChangeID)
		return d.list
	}
	effect := f.Planned.Effect.Digest()
	d.add(o.EffectDigest != effect, "effect_digest", effect, o.EffectDigest)
	d.add(f.Planned.OriginID == "" || o.OriginID != f.Planned.OriginID, "origin_id", f.Planned.OriginID, o.OriginID)
	d.add(f.Planned.Answer() == policy.Deny, "guardrails", "a plan that the customer's guardrails do not deny", string(policy.Deny))
	d.add(f.Planned.Pinned == "", "pinned", "a plan that changes something", "none")
	d.add(f.Spec.Pinned != f.Planned.Pinned, "pinned", f.Planned.Pinned, f.Spec.Pinned)
	d.add(f.PinnedDigest != f.Planned.Pinned, "plan_bytes_digest", f.Planned.Pinned, f.PinnedDigest)
	for _, diff := range capsule.Diff(f.Planned.Effect, f.Effect) {
		d.add(true, diff.Field, diff.A, diff.B)
	}
	return d.list
}

// movable are fields of an effect that change without anybody meaning harm: somebody
// changed the resource since the plan, or the customer the guardrails. The change is
// planned again.
var movable = []string{"serial", "lineage", "guardrails_digest", "verdict"}

func onlyMoved(differs []jobspec.Difference) bool {
	return !slices.ContainsFunc(differs, func(d jobspec.Difference) bool { return !slices.Contains(movable, d.Field) })
}
