package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/pause"
	"github.com/berth-dev/berth/pkg/recovery"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/stateproxy"
)

// resealEvery is how often the agent looks whether the customer wants everything
// sealed again: a file of its own directory.
const resealEvery = 2 * time.Second

// ResealRequest is the customer's wish that everything is sealed again, and how
// that ended.
type ResealRequest struct {
	AskedAt time.Time `json:"asked_at"`
	DoneAt  time.Time `json:"done_at,omitzero"`
	// Resources is how many were sealed again.
	Resources int    `json:"resources,omitempty"`
	Error     string `json:"error,omitempty"`
}

// brought is what a session brings for a machine that takes the place of this one.
type brought struct {
	key    *recovery.Public
	signed *capsule.Envelope
	salt   *[]byte
}

// bringRecovery tells of the customer's recovery key, and seals the salt to it.
func (a *agent) bringRecovery() (brought, error) {
	if a.runner.InstallID == "" || a.keys.Recovery.Recipient == "" {
		return brought{}, nil
	}
	key := a.keys.Recovery
	salt, err := seal.Seal(a.keys.Recipients(), datadir.SaltPurpose(a.runner), a.keys.Salt)
	if err != nil {
		return brought{}, fmt.Errorf("seal salt: %w", err)
	}
	var signed capsule.Envelope
	found, err := datadir.ReadJSON(a.dir.RecoveryChange(), &signed)
	if err == nil && !found {
		signed, err = recovery.Introduce(a.keys.Sign, recovery.Change{
			OrgID: a.runner.OrgID, InstallID: a.runner.InstallID, Next: key, SignedAt: a.cfg.Now().UTC(),
		})
	}
	if err != nil {
		return brought{}, fmt.Errorf("recovery key: %w", err)
	}
	return brought{key: &key, signed: &signed, salt: &salt}, nil
}

// followReseal seals everything again when the customer asks for it.
func (a *agent) followReseal(ctx context.Context) error {
	for {
		var wish ResealRequest
		found, err := datadir.ReadJSON(a.dir.Reseal(), &wish)
		if err != nil {
			a.cfg.Log.WarnContext(ctx, "the wish to seal again is not readable", "err", err)
		}
		if err == nil && found && wish.DoneAt.IsZero() {
			n, err := a.resealAll(ctx)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			wish.DoneAt, wish.Resources, wish.Error = a.cfg.Now().UTC(), n, errorText(err)
			if err != nil {
				a.cfg.Log.ErrorContext(ctx, "not everything was sealed again", "err", err)
			} else {
				a.note(ctx, "sealed again", fmt.Sprintf("states and outputs of %d resources", n))
			}
			if err := a.keepWish(ctx, wish); err != nil {
				return err
			}
		}
		if err := pause.For(ctx, resealEvery); err != nil {
			return err
		}
	}
}

// resealAll seals states and outputs again, each for its purpose and to the
// recipients of now; after that the first form opens here no more.
func (a *agent) resealAll(ctx context.Context) (int, error) {
	n, err := Resealer{Store: a.api, Runner: a.runner, Keys: a.keys, Open: a.keys.Open}.All(ctx)
	if err != nil {
		return n, err
	}
	return n, a.disk.Insist(a.dir.EndFirstForm)
}

// keepWish writes down how a wish ended. It waits for room: by what is on disk,
// everything would be sealed once more.
func (a *agent) keepWish(ctx context.Context, wish ResealRequest) error {
	for try := 0; ; try++ {
		err := a.disk.Insist(func() error { return datadir.WriteJSON(a.dir.Reseal(), wish) })
		if err == nil {
			return nil
		}
		if try == 0 {
			a.cfg.Log.ErrorContext(ctx, "the answer to the wish to seal again cannot be written", "err", err)
		}
		if err := pause.For(ctx, control.Backoff(try)); err != nil {
			return err
		}
	}
}

// SealedStore is where states and outputs are kept: runner-api.
type SealedStore interface {
	ListSealed(ctx context.Context) (runnerapi.SealedList, error)
	Sealed(ctx context.Context, resource string) (runnerapi.Sealed, error)
	PutSealed(ctx context.Context, resource string, w runnerapi.SealedWrite) error
}

// Resealer seals the states and outputs of an install again.
type Resealer struct {
	Store  SealedStore
	Runner datadir.Runner
	// Keys are those to whose recipients it seals; Open opens what is sealed now.
	Keys datadir.Keys
	Open seal.Opener
}

// All seals everything again and returns for how many resources it did. A
// resource that does not open is left as it is, and named in the error.
func (r Resealer) All(ctx context.Context) (done int, _ error) {
	list, err := r.Store.ListSealed(ctx)
	if err != nil {
		return 0, err
	}
	var failed []error
	for _, resource := range list.Resources {
		err := r.one(ctx, resource.ID)
		if control.Is(err, "sealed_moved") { // a job wrote in between: that is sealed already, or is the next time
			err = r.one(ctx, resource.ID)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", resource.Name, err))
			continue
		}
		done++
	}
	return done, errors.Join(failed...)
}

func (r Resealer) one(ctx context.Context, id string) error {
	kept, err := r.Store.Sealed(ctx, id)
	if err != nil {
		return err
	}
	w := runnerapi.SealedWrite{OutputsBefore: kept.Outputs, Outputs: jobspec.Outputs{}}
	for name, out := range kept.Outputs {
		if out.Value, err = r.output(kept, name, out.Value); err != nil {
			return fmt.Errorf("output %s: %w", name, err)
		}
		w.Outputs[name] = out
	}
	if kept.State != nil {
		state := *kept.State
		if state.Body, err = r.state(id, state); err != nil {
			return fmt.Errorf("state: %w", err)
		}
		w.State = &state
	}
	return r.Store.PutSealed(ctx, id, w)
}

func (r Resealer) state(resource string, s runnerapi.SealedState) ([]byte, error) {
	purpose := datadir.StatePurpose(r.Runner, resource, s.Lineage, s.Serial)
	body, _, err := stateproxy.OpenWith(r.Open, purpose, s.Body)
	if err != nil {
		return nil, err
	}
	if got := stateproxy.Digest(r.Keys.Salt, body); got != s.Digest {
		return nil, fmt.Errorf("its digest is %s, and the control plane has %s", got, s.Digest)
	}
	return seal.Seal(r.Keys.Recipients(), purpose, body)
}

func (r Resealer) output(of runnerapi.Sealed, name string, value json.RawMessage) (json.RawMessage, error) {
	if !seal.HasSealed(value) {
		return value, nil
	}
	purpose := interpolate.SandboxOutput(r.Runner.OrgID, r.Runner.InstallID, name)
	if of.Kind == "component" {
		purpose = interpolate.ComponentOutput(r.Runner.OrgID, r.Runner.InstallID, of.ID, of.Name, name)
	}
	whole := func(path []string) (seal.Purpose, bool) { return purpose, len(path) == 0 }
	opened, err := seal.OpenLeaves(r.Open, value, whole)
	if err != nil {
		return nil, err
	}
	sealed, err := seal.SealLeaves(r.Keys.Recipients(), opened, whole)
	if err != nil {
		return nil, err
	}
	return json.Marshal(sealed)
}
