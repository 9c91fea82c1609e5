// Package order signs what a runner is to do: with each job that is stored goes
// an order, made in the same transaction, that names the digest of the job's
// spec. A runner acts on nothing else.
package order

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// ErrNoMachine says that nobody has enrolled as the runner yet: an order names
// the key of the machine that it is for.
var ErrNoMachine = errors.New("the runner has no key yet")

// Draft is what an order says in addition to its job's spec.
type Draft struct {
	RunnerID string
	// MachineKey is the public key of the runner, nil before it has enrolled.
	MachineKey       *string
	OriginID         string
	ReleaseID        string
	MinRunnerVersion string
	Actor            string

	// Of jobs that mutate only.
	EffectDigest    string
	PlanBytesDigest string
	Fence           int64
}

// Signed are a spec and its order as they are stored and sent: these bytes and
// no others.
type Signed struct {
	Spec     json.RawMessage
	Envelope json.RawMessage
}

// Sign writes a spec down and signs the order for it with key. It is good from
// now on for as long as an order may be.
func Sign(key ed25519.PrivateKey, spec jobspec.Spec, d Draft, now time.Time) (Signed, error) {
	if d.MachineKey == nil {
		return Signed{}, ErrNoMachine
	}
	machine, err := capsule.ParsePublicKey(*d.MachineKey)
	if err != nil {
		return Signed{}, fmt.Errorf("key of runner %s: %w", d.RunnerID, err)
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return Signed{}, fmt.Errorf("write spec: %w", err)
	}
	state, err := stateIn(text)
	if err != nil {
		return Signed{}, err
	}
	now = now.UTC().Truncate(time.Second)
	o := capsule.Order{
		OrgID: spec.OrgID, InstallID: spec.InstallID, RunnerID: d.RunnerID, MachineKeyID: capsule.KeyID(machine),
		JobID: spec.JobID, Kind: string(spec.Kind), Operation: string(spec.Operation), ChangeID: spec.ChangeID, BuildID: spec.BuildID,
		OriginID: d.OriginID, ReleaseID: d.ReleaseID, SpecDigest: capsule.DigestBytes(text), StateDigest: state,
		Starts: capsule.StartsOfReading, IssuedAt: now, ExpiresAt: now.Add(capsule.OrderLifetime),
		MinRunnerVersion: d.MinRunnerVersion, Actor: d.Actor,
	}
	if spec.Resource != nil {
		o.ResourceID = spec.Resource.ID
	}
	if spec.Mutates() {
		o.Starts, o.Nonce = capsule.StartsOfMutation, capsule.NewNonce()
		o.EffectDigest, o.PlanBytesDigest, o.Fence = d.EffectDigest, d.PlanBytesDigest, d.Fence
	}
	public, _ := key.Public().(ed25519.PublicKey)
	envelope, err := capsule.Sign(key, capsule.KeyID(public), capsule.OrderType, o)
	if err != nil {
		return Signed{}, err
	}
	raw, err := json.Marshal(envelope)
	return Signed{Spec: text, Envelope: raw}, err
}

// ErrNotOrdered says that a stored job is not what was ordered.
var ErrNotOrdered = errors.New("the job does not match its order: the order is outdated, or somebody changed the job's row")

// Ordered reads a spec that this key ordered, or says that it did not.
func Ordered(key ed25519.PrivateKey, s Signed) (jobspec.Spec, error) {
	public, _ := key.Public().(ed25519.PublicKey)
	var envelope capsule.Envelope
	var o capsule.Order
	if len(s.Envelope) == 0 || json.Unmarshal(s.Envelope, &envelope) != nil {
		return jobspec.Spec{}, ErrNotOrdered
	}
	if _, err := capsule.Verify(map[string]ed25519.PublicKey{capsule.KeyID(public): public}, capsule.OrderType, envelope, &o); err != nil {
		return jobspec.Spec{}, fmt.Errorf("%w: %w", ErrNotOrdered, err)
	}
	var spec jobspec.Spec
	if o.SpecDigest != capsule.DigestBytes(s.Spec) || json.Unmarshal(s.Spec, &spec) != nil || spec.JobID != o.JobID {
		return jobspec.Spec{}, ErrNotOrdered
	}
	return spec, nil
}

// stateIn is the digest of the state as it stands in the text of a spec, which
// need not be how it stood in the row that it was read from.
func stateIn(text []byte) (string, error) {
	var spec struct {
		State json.RawMessage `json:"state"`
	}
	if err := json.Unmarshal(text, &spec); err != nil {
		return "", fmt.Errorf("read spec: %w", err)
	}
	if len(spec.State) == 0 {
		return "", nil
	}
	return capsule.DigestBytes(spec.State), nil
}
