// Package order decides whether the runner obeys an order to change something.
//
// An order is a capsule, signed by a dispatch key that the customer pinned. The
// signature alone proves nothing against a control plane that was taken over,
// so everything in it is compared with what the runner finds out by itself: its
// own record of the plan, the bytes in its own registry, the executables, the
// present state, the fences and nonces that it has seen. Each field that stands
// against it is named.
//
//	capsule ──▶ Verify ──▶ Check(capsule, Facts) ──▶ obey | refused | stale
//	                             ▲
//	 plan record, digests, state, fences, nonces ┘
package order

import (
	"crypto/ed25519"
	"strconv"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// Record is what the runner wrote down about a plan that it made. An apply is
// judged by it, not by what the control plane says was planned.
type Record struct {
	ChangeID string `json:"change_id"`
	JobID    string `json:"job_id"`
	// Effect is all that the plan does; EffectDigest is its digest.
	Effect       capsule.Effect `json:"effect"`
	EffectDigest string         `json:"effect_digest"`
	// Pinned is the digest of the sealed bytes that an apply needs, Blob names
	// the artifact in the own registry that holds them. Both are empty when the
	// plan changes nothing.
	Pinned    string    `json:"pinned,omitempty"`
	Blob      string    `json:"blob,omitempty"`
	PlannedAt time.Time `json:"planned_at"`
}

// Facts are what the runner knows without looking at the capsule.
type Facts struct {
	RunnerID, RunnerVersion string
	Spec                    jobspec.Spec
	// Fence came with the assignment, nil when none did.
	Fence *int64
	// HighestFence is the highest that was ever seen for the resource.
	HighestFence int64
	// Planned is the own record of the change, nil when there is none.
	Planned *Record
	// Effect is the planned one with everything that can be found out again
	// put in anew.
	Effect capsule.Effect
	// PinnedDigest is that of the sealed bytes as they are now in the own
	// registry; empty when they are gone.
	PinnedDigest string
	// ArtifactProblem says what is wrong with the artifact's bytes, "" if
	// nothing is.
	ArtifactProblem string
	NonceUsed       func(nonce string) bool
	Now             time.Time
}

// Verdict is the answer to an order. The zero Outcome means: obey.
type Verdict struct {
	Outcome jobspec.Outcome
	Differs []jobspec.Difference
	// Capsule is the verified order; zero when its signature was refused.
	Capsule capsule.Capsule
}

// Judge verifies an order and compares it with the facts.
func Judge(keys map[string]ed25519.PublicKey, env *capsule.Envelope, f Facts) Verdict {
	if env == nil {
		return refuse(capsule.Capsule{}, jobspec.Difference{Field: "capsule", Want: "a signed order", Got: "none"})
	}
	var c capsule.Capsule
	if _, err := capsule.Verify(keys, capsule.PayloadType, *env, &c); err != nil {
		return refuse(capsule.Capsule{}, jobspec.Difference{Field: "signature", Want: "one of a pinned dispatch key", Got: err.Error()})
	}
	differs := Check(c, f)
	switch {
	case len(differs) == 0:
		return Verdict{Capsule: c}
	case onlyStateMoved(differs):
		return Verdict{Outcome: jobspec.OutcomeStale, Differs: differs, Capsule: c}
	}
	return refuse(c, differs...)
}

// Check names every field of a verified order that stands against it.
func Check(c capsule.Capsule, f Facts) []jobspec.Difference {
	var differs []jobspec.Difference
	differ := func(bad bool, field, want, got string) {
		if bad {
			differs = append(differs, jobspec.Difference{Field: field, Want: want, Got: got})
		}
	}
	want := capsule.Facts{
		JobID:           f.Spec.JobID,
		RunnerID:        f.RunnerID,
		RunnerVersion:   f.RunnerVersion,
		OrgID:           f.Spec.OrgID,
		InstallID:       f.Spec.InstallID,
		Operation:       string(f.Spec.Operation),
		PlanBytesDigest: f.PinnedDigest,
		Now:             f.Now,
		NonceUsed:       f.NonceUsed(c.Nonce),
	}
	if f.Spec.Resource != nil {
		want.ResourceID = f.Spec.Resource.ID
	}
	if f.Fence != nil {
		want.Fence = *f.Fence
	}
	if f.Planned != nil {
		want.EffectDigest = f.Planned.Effect.Digest()
	}
	for _, d := range capsule.Check(c, want) {
		differ(true, d.Field, d.B, d.A)
	}
	differ(f.Fence == nil, "fence", "the grant on the resource", "none")
	differ(f.Fence != nil && *f.Fence < f.HighestFence, "fence",
		"at least "+strconv.FormatInt(f.HighestFence, 10), strconv.FormatInt(want.Fence, 10))
	differ(f.ArtifactProblem != "", "artifact_digest", "the bytes of the digest", f.ArtifactProblem)
	if f.Planned == nil {
		differ(true, "plan", "a plan that this runner made", "none for change "+f.Spec.ChangeID)
		return differs
	}
	differ(f.Planned.Pinned == "", "pinned", "a plan that changes something", "none")
	differ(f.Spec.Pinned != f.Planned.Pinned, "pinned", f.Planned.Pinned, f.Spec.Pinned)
	differ(f.PinnedDigest != f.Planned.Pinned, "plan_bytes_digest", f.Planned.Pinned, f.PinnedDigest)
	for _, d := range capsule.Diff(f.Planned.Effect, f.Effect) {
		differ(true, d.Field, d.A, d.B)
	}
	return differs
}

// onlyStateMoved: somebody changed the resource since the plan, and nothing
// else is wrong. That is no attack; the change is planned again.
func onlyStateMoved(differs []jobspec.Difference) bool {
	for _, d := range differs {
		if d.Field != "serial" && d.Field != "lineage" {
			return false
		}
	}
	return true
}

func refuse(c capsule.Capsule, differs ...jobspec.Difference) Verdict {
	return Verdict{Outcome: jobspec.OutcomeRefused, Differs: differs, Capsule: c}
}
