// Package tfstates decides what people of the vendor see of Terraform states, and when
// they may free a lock. It never has a state's bytes: those are the customer's.
package tfstates

import (
	"encoding/json"

	"github.com/berth-dev/berth/pkg/tfstate"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
)

// Held is a lock, and what is known of its holder.
type Held struct {
	JobID    string
	JobState model.JobState
	// LockedBy is the change that has the resource now; "" for none.
	LockedBy string
}

// Alive reports whether the holder may still write: expired is not dead, so a job
// counts until it has ended.
func (h Held) Alive() bool { return !h.JobState.Ended() }

// MayFree says why a lock is not freed; nil when it may be. It does no I/O.
func MayFree(h Held) error {
	inUse := func(remedy, format string, args ...any) error {
		return fault.With(fault.Newf(fault.ErrConflict, format, args...), fault.Code("state_in_use"), fault.Remedy("%s", remedy))
	}
	switch {
	case h.Alive() && h.JobState == model.JobQueued:
		return inUse("cancel its workflow, or wait", "job %s, which holds the lock, waits for the runner", h.JobID)
	case h.Alive():
		return inUse("wait until it ends, or cancel its workflow; the customer can free the lock with berth-runner state unlock --force", "job %s, which holds the lock, is still running", h.JobID)
	case h.LockedBy != "":
		return inUse("wait until it has ended", "change %s is being applied to this resource", h.LockedBy)
	}
	return nil
}

// maxText is the most that is shown of what Terraform says about a holder.
const maxText = 200

// Holder reads from Terraform's description of a lock who took it and for what.
func Holder(info json.RawMessage) (who, operation string) {
	var said struct{ Who, Operation string }
	if json.Unmarshal(info, &said) != nil {
		return "", ""
	}
	return said.Who[:min(len(said.Who), maxText)], said.Operation[:min(len(said.Operation), maxText)]
}

// Read reads what a runner wrote about a state. What is no such document tells nothing.
func Read(raw json.RawMessage) tfstate.Summary {
	var s tfstate.Summary
	if json.Unmarshal(raw, &s) != nil {
		return tfstate.Summary{Level: tfstate.Counts}
	}
	if level, err := tfstate.ParseLevel(string(s.Level)); err != nil || s.Level == "" {
		s.Level = tfstate.Counts
	} else {
		s.Level = level
	}
	return s
}
