package stateproxy

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"

	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// heldLock is the lock that Terraform took and did not give back yet.
type heldLock struct {
	ID string `json:"id"`
}

func (p *Proxy) lock(w http.ResponseWriter, r *http.Request) {
	var info map[string]any
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&info); err != nil {
		http.Error(w, "lock is not JSON", http.StatusBadRequest)
		return
	}
	id, _ := info["ID"].(string)
	if !p.Mutates {
		w.WriteHeader(http.StatusOK)
		return
	}
	if err := p.fenced(); err != nil {
		p.fail(w, r, "lock", err)
		return
	}
	in := runnerapi.LockRequest{JobID: p.Attempt.JobID, Attempt: p.Attempt.Attempt, Fence: p.Fence, LockID: id, Info: info}
	if err := p.keep(p.lockPath(), heldLock{ID: id}); err != nil {
		p.fail(w, r, "keep", err)
		return
	}
	var holder *runnerapi.Lock
	err := control.Retry(r.Context(), p.Log, "lock state", func(ctx context.Context) (err error) {
		holder, err = p.States.LockState(ctx, p.Resource, in)
		return err
	})
	switch {
	case err == nil:
		w.WriteHeader(http.StatusOK)
	case holder != nil:
		_ = datadir.Remove(p.lockPath())
		w.WriteHeader(http.StatusLocked)
		_ = json.NewEncoder(w).Encode(holder.Info)
	default:
		p.fail(w, r, "lock", err)
	}
}

func (p *Proxy) unlockHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.Mutates {
		w.WriteHeader(http.StatusOK)
		return
	}
	var info struct{ ID string }
	_ = json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&info) // an empty body is a forced unlock
	if info.ID == "" {
		http.Error(w, "only the holder of a lock frees it", http.StatusBadRequest)
		return
	}
	if err := p.unlock(r.Context(), info.ID); err != nil {
		p.fail(w, r, "unlock", err)
	}
}

func (p *Proxy) unlock(ctx context.Context, id string) error {
	in := runnerapi.UnlockRequest{JobID: p.Attempt.JobID, Attempt: p.Attempt.Attempt, LockID: id}
	err := control.Retry(ctx, p.Log, "unlock state", func(ctx context.Context) error {
		return p.States.UnlockState(ctx, p.Resource, in)
	})
	if err != nil {
		return err
	}
	return datadir.Remove(p.lockPath())
}

func (p *Proxy) lockPath() string { return filepath.Join(p.Dir, "state-lock.json") }
