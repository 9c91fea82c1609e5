package api

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/session"
)

// attempt is a job of the session's own runner, seen from one attempt at it.
type attempt struct {
	runnerdb.RunnerAttemptRow
	session *session.Session
	number  int
	// leaseOpen: this attempt has a lease of this session that was not ended.
	leaseOpen bool
}

// attemptOf reads and locks a job. Another runner's job does not exist.
func attemptOf(ctx context.Context, tx *database.Tx, s *session.Session, named session.Attempt) (attempt, error) {
	row, err := tx.RunnerAttempt(ctx, runnerdb.RunnerAttemptParams{JobID: named.JobID, RunnerID: s.RunnerID, Attempt: int32(named.Attempt)})
	if err != nil {
		return attempt{}, fmt.Errorf("job %s: %w", named.JobID, err)
	}
	return attempt{
		RunnerAttemptRow: row,
		session:          s,
		number:           named.Attempt,
		leaseOpen:        model.LeaseState(row.LeaseState).Open() && row.LeaseSessionID == s.ID,
	}, nil
}

// open reports whether this is the attempt that works on the job now.
func (a attempt) open() bool {
	return a.leaseOpen && a.State == model.JobLeased && int(a.Attempt) == a.number
}

// superseded reports whether the resource was granted to somebody else.
func (a attempt) superseded() bool { return a.Fence != nil && a.ResourceFence > *a.Fence }

// stored is what the job came to so far.
func (a attempt) stored() (r model.JobResult, err error) {
	if err := json.Unmarshal(a.Result, &r); err != nil {
		return r, fmt.Errorf("result of job %s: %w", a.ID, err)
	}
	return r, nil
}

// errSuperseded is what a runner hears that works on an attempt which is over.
func errSuperseded(format string, args ...any) error {
	return fault.With(fault.Newf(fault.ErrConflict, format, args...), fault.Code("superseded"), fault.Remedy("stop this attempt"))
}
