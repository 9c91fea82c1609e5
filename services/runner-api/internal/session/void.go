package session

import (
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
)

// Principal is the bearer of the session, as the rest of Berth knows it.
func (s *Session) Principal() auth.Principal {
	return auth.Principal{
		Kind: auth.KindRunner, OrgID: s.OrgID, RunnerID: s.RunnerID, InstallID: s.InstallID, SessionID: s.ID, Epoch: s.Epoch,
	}
}

// Check says whether the session is still the one that counts, from the row of
// its runner. Inside a transaction, read that row with its lock.
func (s *Session) Check(runnerState string, runnerEpoch int64) error {
	switch {
	case runnerState != "active":
		return fault.With(fault.Newf(fault.ErrUnauthenticated, "the runner was revoked"), fault.Code("runner_revoked"))
	case runnerEpoch != s.Epoch:
		return ErrVoid()
	}
	return nil
}

// ErrVoid is what the bearer of an older session is told.
func ErrVoid() error {
	return fault.With(fault.Newf(fault.ErrUnauthenticated, "this session is over: a newer one was opened, or the machine was replaced"),
		fault.Code("session_void"), fault.Remedy("stop what runs; open a new session if this is still the runner's machine"))
}
