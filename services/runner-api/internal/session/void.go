package session

import (
	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
)

// Why sessions were closed and attempts ended, in rows.
const (
	ClosedByNext        = "new_session" // the next one was opened
	ClosedByReplacement = "replaced"    // another machine has replaced this one
)

// Principal is the bearer of the session, as the rest of Berth knows it.
func (s *Session) Principal() auth.Principal {
	return auth.Principal{
		Kind: auth.KindRunner, OrgID: s.OrgID, RunnerID: s.RunnerID, InstallID: s.InstallID, SessionID: s.ID, Epoch: s.Epoch,
	}
}

// Check says whether the session is still the one that counts, from the row of
// its runner: state, epoch and public key. Inside a transaction, read that row with
// its lock.
func (s *Session) Check(state model.RunnerState, epoch int64, key *string) error {
	switch {
	case state != model.RunnerActive:
		return ErrRevoked()
	case epoch == s.Epoch:
		return nil
	case key == nil || *key != capsule.EncodePublicKey(s.PublicKey):
		return ErrVoid()
	}
	return ErrOvertaken()
}

// ErrRevoked is the answer to a revoked runner.
func ErrRevoked() error {
	return fault.With(fault.Newf(fault.ErrUnauthenticated, "the runner was revoked"), fault.Code("runner_revoked"))
}

// ErrVoid is the answer to a replaced machine.
func ErrVoid() error {
	return fault.With(fault.Newf(fault.ErrUnauthenticated, "this session is over: another machine has replaced this one"),
		fault.Code("session_void"), fault.Remedy("stop everything that is running"))
}

// ErrOvertaken is the answer to the bearer of an older session.
func ErrOvertaken() error {
	return fault.With(fault.Newf(fault.ErrUnauthenticated, "this session is over: another one was opened with this runner's key"),
		fault.Code("session_overtaken"), fault.Remedy("stop everything that is running, then open a new session"))
}

// ErrDisputed is the answer to a disputed runner that asks for sealed data.
func ErrDisputed() error {
	return fault.With(fault.Newf(fault.ErrForbidden, "another process holds the key of this runner"),
		fault.Code("runner_disputed"), fault.Remedy("replace the machine: run berth-runner replace --recovery FILE on another one"))
}
