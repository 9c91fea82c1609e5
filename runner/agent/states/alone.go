package states

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
)

// Marked returns exactly this state of a resource, by its id. The error is ErrNone where
// it is not kept.
func (s Store) Marked(resource string, m jobspec.StateMark) (Kept, error) {
	all, err := s.history(s.of(resource))
	if err != nil {
		return Kept{}, err
	}
	for _, k := range all {
		if k.Lineage == m.Lineage && k.Serial == m.Serial && k.Digest == m.Digest {
			return k.Kept, nil
		}
	}
	return Kept{}, fmt.Errorf("%w: serial %d of %s", ErrNone, m.Serial, resource)
}

// Alone gives out one kept state and takes none: it is all that is behind the state
// backend of an engine that looks for drift.
type Alone struct {
	Store Store
	Mark  jobspec.StateMark
}

// errAlone is what a write gets. The backend of a look refuses it before.
var errAlone = errors.New("a look for drift writes no state")

// State returns the kept state of a resource.
func (a Alone) State(_ context.Context, resource string, _ runnerapi.Attempt) (*runnerapi.State, error) {
	k, err := a.Store.Marked(resource, a.Mark)
	if err != nil {
		return nil, err
	}
	return &runnerapi.State{Serial: k.Serial, Lineage: k.Lineage, Digest: k.Digest, Body: k.Sealed}, nil
}

// PutState refuses.
func (a Alone) PutState(context.Context, string, runnerapi.StateWrite) error { return errAlone }

// LockState refuses.
func (a Alone) LockState(context.Context, string, runnerapi.LockRequest) (*runnerapi.Lock, error) {
	return nil, errAlone
}

// UnlockState refuses.
func (a Alone) UnlockState(context.Context, string, runnerapi.UnlockRequest) error { return errAlone }
