package stateproxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"

	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// Push hands in a state that Terraform could not save: it wrote it to a file, let go of
// its lock and ended. The states of plugins are handed in by it too. The state gets a lock of its own, and is judged as any other: with
// the fence of this attempt, and only above the serial that is stored. Until it is taken
// it is on disk, sealed; one that is refused stays as evidence. Handing in the same state
// again changes nothing. It returns the state's serial.
//
// Call it after Finish, when nothing else of this attempt writes.
func (p *Proxy) Push(ctx context.Context, body []byte) (serial int64, err error) {
	if !p.Mutates {
		return 0, errors.New("a plan writes no state")
	}
	d, err := parse(body)
	if err != nil {
		return 0, err
	}
	d.secrets(func(v any) { p.Learn(v, true) })
	write, err := p.sealed(body, d)
	if err != nil {
		return d.Serial, err
	}
	if err := p.fenced(); err != nil {
		return d.Serial, errors.Join(err, p.setAside(write, err))
	}
	write.LockID = p.ownLock()
	// In this order on disk: an agent that starts again after a kill delivers the state,
	// then frees the lock.
	if err := p.keep(p.lockPath(), heldLock{ID: write.LockID}); err != nil {
		return d.Serial, err
	}
	if err := p.lockFor(ctx, "hands in a state"); err != nil {
		return d.Serial, errors.Join(err, p.setAside(write, err), datadir.Remove(p.lockPath()))
	}
	if err := p.keep(p.pendingPath(), write); err != nil {
		return d.Serial, err
	}
	if err := p.deliver(ctx, write); err != nil {
		if ctx.Err() != nil || control.Away(err) {
			return d.Serial, err // it waits on disk, and needs its lock
		}
		return d.Serial, errors.Join(err, p.unlock(ctx, write.LockID))
	}
	p.note(d.Lineage, d.Serial)
	// What was refused when Terraform itself tried is the same state.
	return d.Serial, errors.Join(p.unlock(ctx, write.LockID), datadir.Remove(p.refusedPath(d.Serial)))
}

// Hold locks the state for an attempt that mutates and returns it opened, nil when
// there is none. It is for states that the agent hands in by itself, with Push; until
// then, or until Finish, nobody else gets the lock.
func (p *Proxy) Hold(ctx context.Context) ([]byte, error) {
	if !p.Mutates {
		return p.read(ctx)
	}
	if err := p.keep(p.lockPath(), heldLock{ID: p.ownLock()}); err != nil {
		return nil, err
	}
	if err := p.lockFor(ctx, "applies"); err != nil {
		return nil, errors.Join(err, datadir.Remove(p.lockPath()))
	}
	return p.read(ctx)
}

// SetAside seals a state that nobody takes, and keeps it as evidence.
func (p *Proxy) SetAside(body []byte, why error) error {
	d, err := parse(body)
	if err != nil {
		return err
	}
	write, err := p.sealed(body, d)
	if err != nil {
		return err
	}
	return p.setAside(write, why)
}

// ownLock is the id under which the agent itself locks the state for the attempt.
func (p *Proxy) ownLock() string {
	return "push-" + p.Attempt.JobID + "-" + strconv.Itoa(p.Attempt.Attempt)
}

// lockFor takes the agent's own lock of the state. What says for what.
func (p *Proxy) lockFor(ctx context.Context, what string) error {
	id := p.ownLock()
	in := runnerapi.LockRequest{
		JobID: p.Attempt.JobID, Attempt: p.Attempt.Attempt, Fence: p.Fence, LockID: id,
		Info: map[string]any{"ID": id, "Operation": what, "Who": "berth-runner"},
	}
	return control.Retry(ctx, p.Log, "lock state", func(ctx context.Context) error {
		holder, err := p.States.LockState(ctx, p.Resource, in)
		if holder != nil {
			return &control.Error{Status: http.StatusLocked, Code: "state_locked", Detail: "somebody else holds the state"}
		}
		return err
	})
}

// sealed is the write of a state, without a lock.
func (p *Proxy) sealed(body []byte, d Document) (runnerapi.StateWrite, error) {
	sealed, err := seal.Seal(p.Keys.Recipients(), datadir.StatePurpose(p.Runner, p.Resource, d.Lineage, d.Serial), body)
	if err != nil {
		return runnerapi.StateWrite{}, fmt.Errorf("seal the state: %w", err)
	}
	summary, err := p.summary(body, d, len(sealed))
	if err != nil {
		return runnerapi.StateWrite{}, err
	}
	return runnerapi.StateWrite{
		JobID: p.Attempt.JobID, Attempt: p.Attempt.Attempt, Fence: p.Fence,
		Serial: d.Serial, Lineage: d.Lineage, Digest: Digest(p.Keys.Salt, body), Body: sealed, Summary: &summary,
	}, nil
}

func (p *Proxy) refusedPath(serial int64) string {
	return filepath.Join(p.Dir, fmt.Sprintf("refused-state-%d.json", serial))
}
