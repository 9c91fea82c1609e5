// Package unlock frees the lock of a Terraform state for the customer.
//
// Nobody but the holder of a lock may free it, for two engines that write one state lose
// one of the two. So a lock goes only when its job has ended; with force also before, and
// then the job is shut out of the state first: what its engine still brings, also after a
// kill and a new start, is kept as evidence and changes nothing.
package unlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/runnerapi"
)

// Request is the customer's wish, in a file of the data directory, and how it ended.
type Request struct {
	AskedAt  time.Time `json:"asked_at"`
	Resource string    `json:"resource_id"`
	Name     string    `json:"name"`
	// Free says that the lock is to be freed; else it is only looked at. Force frees that of
	// a job that has not ended.
	Free  bool `json:"free,omitempty"`
	Force bool `json:"force,omitempty"`
	// LockID is the lock that the customer was shown: another one stays.
	LockID string `json:"lock_id,omitempty"`

	DoneAt time.Time `json:"done_at,omitzero"`
	Held   *Held     `json:"held,omitempty"` // nil: nobody holds it
	Freed  bool      `json:"freed,omitempty"`
	Error  string    `json:"error,omitempty"`
}

// Held is who holds a lock.
type Held struct {
	LockID    string    `json:"lock_id"`
	JobID     string    `json:"job_id"`
	Attempt   int       `json:"attempt"`
	JobState  string    `json:"job_state"`
	Who       string    `json:"who,omitempty"`
	Operation string    `json:"operation,omitempty"`
	LockedAt  time.Time `json:"locked_at"`
	// Here: this machine works on the job.
	Here bool `json:"here,omitempty"`
	// Alive: the job has not ended, or this machine still works on it.
	Alive bool `json:"alive"`
}

// Patience is how long the customer's command waits for the agent. Older requests are
// not done any more.
const Patience = 30 * time.Second

// ErrInUse says that the job that holds the lock lives.
var ErrInUse = errors.New("the job that holds the lock has not ended")

// Decide says why a lock stays; nil when it may go. It does no I/O.
func Decide(held Held, r Request) error {
	switch {
	case r.LockID != "" && r.LockID != held.LockID:
		return errors.New("another job has taken the lock meanwhile; look again")
	case held.Alive && !r.Force:
		return fmt.Errorf("%w: wait for it or cancel it, or use --force, which shuts it out of its state", ErrInUse)
	}
	return nil
}

// Locks is runner-api.
type Locks interface {
	StateLock(ctx context.Context, resource string) (*runnerapi.HeldLock, error)
	UnlockState(ctx context.Context, resource string, in runnerapi.UnlockRequest) error
}

// Unlocker does what a request asks for.
type Unlocker struct {
	Locks Locks
	// Here tells whether this machine works on an attempt.
	Here func(runnerapi.Attempt) bool
	// Fence shuts an attempt out of its state for good. It may be called again.
	Fence func(runnerapi.Attempt) error
	// Record writes down what is done, before it is done: without a record, nothing is.
	Record func(ctx context.Context, h Held, forced bool) error
}

// tries is how often a lock is freed that an attempt takes again: one that was on its
// way when the attempt was shut out.
const tries = 3

// Do looks at the lock, and frees it where that is asked for and allowed.
func (u Unlocker) Do(ctx context.Context, r Request) Request {
	r.Freed, r.Error = false, ""
	held, err := u.look(ctx, r.Resource)
	r.Held = held
	if err == nil && held != nil && r.Free {
		err = u.free(ctx, *held, r)
		r.Freed = err == nil
	}
	if err != nil {
		r.Error = err.Error()
	}
	return r
}

func (u Unlocker) free(ctx context.Context, held Held, r Request) error {
	if err := Decide(held, r); err != nil {
		return err
	}
	attempt := runnerapi.Attempt{JobID: held.JobID, Attempt: held.Attempt}
	if err := u.Record(ctx, held, held.Alive); err != nil {
		return err
	}
	if err := u.Fence(attempt); err != nil {
		return err
	}
	for range tries {
		err := u.Locks.UnlockState(ctx, r.Resource, runnerapi.UnlockRequest{JobID: held.JobID, Attempt: held.Attempt, LockID: held.LockID})
		if err != nil {
			return err
		}
		again, err := u.look(ctx, r.Resource)
		if err != nil || again == nil || again.JobID != held.JobID || again.Attempt != held.Attempt {
			return err
		}
		held.LockID = again.LockID
	}
	return errors.New("the job takes the lock again and again")
}

// look is nil when nobody holds the lock.
func (u Unlocker) look(ctx context.Context, resource string) (*Held, error) {
	found, err := u.Locks.StateLock(ctx, resource)
	if err != nil || found == nil {
		return nil, err
	}
	l := found.Lock
	who, _ := l.Info["Who"].(string)
	operation, _ := l.Info["Operation"].(string)
	here := u.Here(runnerapi.Attempt{JobID: l.JobID, Attempt: l.Attempt})
	return &Held{
		LockID: l.LockID, JobID: l.JobID, Attempt: l.Attempt, JobState: found.JobState, Who: who, Operation: operation, LockedAt: l.LockedAt,
		Here: here, Alive: here || found.JobState == "queued" || found.JobState == "leased",
	}, nil
}
