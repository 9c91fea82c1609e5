// Package gate checks who asks: the signature of the request, then the session
// behind its bearer token. What it finds out goes into the context; handlers
// trust nothing else about identity.
package gate

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/httpsig"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/session"
)

const (
	// MaxSkew is how far a runner's clock may be off, and how long a signature
	// is good.
	MaxSkew = 60 * time.Second

	// noncesPerKey bounds what one runner can make us remember: 34 requests
	// per second, which none comes near to.
	noncesPerKey = 4096

	// loadAttempts is how often a session is looked up again when its runner
	// was revoked or restarted during the look-up.
	loadAttempts = 3
)

// Gate checks requests. Safe for concurrent use.
type Gate struct {
	store    *database.Store
	sessions *session.Cache
	nonces   *httpsig.NonceCache
	now      func() time.Time
}

// New returns a gate; now is the clock of signatures, time.Now when nil.
func New(s *database.Store, sessions *session.Cache, now func() time.Time) *Gate {
	if now == nil {
		now = time.Now
	}
	return &Gate{store: s, sessions: sessions, nonces: httpsig.NewNonceCache(MaxSkew, noncesPerKey), now: now}
}

// Session finds the live session of a request and checks that the runner signed
// its header; whether the body is the signed one is for CheckBody. The errors
// are those that a runner may see.
func (g *Gate) Session(ctx context.Context, r *http.Request) (*session.Session, error) {
	token, err := auth.Bearer(r)
	if err != nil || !auth.WellFormed(auth.SessionPrefix, token) {
		return nil, fault.With(fault.Newf(fault.ErrUnauthenticated, "a session token is needed"), fault.Remedy("open a session"))
	}
	s, err := g.Live(ctx, session.Hash(token))
	if err != nil {
		return nil, err
	}
	params, err := g.verifier(s.PublicKey).VerifyHeader(r)
	if err := g.judge(params, err, s.RunnerID); err != nil {
		return nil, err
	}
	return s, nil
}

// Live returns the session of a token as it is now, from memory when it is
// there.
func (g *Gate) Live(ctx context.Context, hash session.TokenHash) (*session.Session, error) {
	for range loadAttempts {
		s, started := g.sessions.Get(hash)
		if s != nil {
			return s, nil
		}
		s, err := g.load(ctx, hash)
		if err != nil {
			return nil, err
		}
		if g.sessions.Put(hash, s, started) {
			return s, nil
		}
	}
	return nil, fault.Newf(fault.ErrUnavailable, "the session is changing; try again")
}

func (g *Gate) load(ctx context.Context, hash session.TokenHash) (*session.Session, error) {
	unknown := fault.With(fault.Newf(fault.ErrUnauthenticated, "the session is not known"), fault.Remedy("open a new session"))
	var org string
	err := g.store.System(ctx, func(ctx context.Context, tx *database.Tx) (err error) {
		org, err = tx.RunnerOrgOfSecret(ctx, runnerdb.RunnerOrgOfSecretParams{Kind: "session", Hash: hash[:]})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find session: %w", err)
	}
	if org == "" {
		return nil, unknown
	}
	var row runnerdb.RunnerSessionByTokenRow
	err = g.store.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) (err error) {
		if row, err = tx.RunnerSessionByToken(ctx, hash[:]); err != nil || row.Used {
			return err
		}
		n, err := tx.RunnerUsedSession(ctx, hash[:])
		if err == nil && n == 0 {
			err = fault.ErrNotFound // it has another token since
		}
		return err
	})
	if errors.Is(err, fault.ErrNotFound) {
		return nil, unknown
	}
	if err != nil {
		return nil, fmt.Errorf("read session: %w", err)
	}
	s := &session.Session{
		ID: row.ID, OrgID: org, RunnerID: row.RunnerID, Kind: row.Kind, Epoch: row.Epoch,
		InstallID: deref(row.InstallID), TokenHash: hash, Disputed: row.Disputed,
	}
	s.Note(session.Reported{Switch: row.Switch, Reason: row.SwitchReason, Since: optional.Value(row.SwitchSince), Problem: row.Problem})
	switch {
	case row.RunnerState != model.RunnerActive:
		return nil, session.ErrRevoked()
	case deref(row.CloseReason) == session.ClosedByNext:
		return nil, session.ErrOvertaken()
	case row.ClosedAt != nil || row.RunnerEpoch != row.Epoch:
		return nil, session.ErrVoid()
	}
	if s.PublicKey, err = capsule.ParsePublicKey(deref(row.PublicKey)); err != nil {
		return nil, fmt.Errorf("key of runner %s: %w", row.RunnerID, err)
	}
	return s, nil
}

// CheckBody says whether the body is the one whose digest was signed.
func CheckBody(r *http.Request, body []byte) error {
	if err := httpsig.CheckBody(r, body); err != nil {
		return refused(err)
	}
	return nil
}

func (g *Gate) verifier(pub ed25519.PublicKey) httpsig.Verifier {
	return httpsig.Verifier{Key: pub, Now: g.now(), MaxSkew: MaxSkew}
}

// verify checks a signature and that it was not used before.
func (g *Gate) verify(r *http.Request, body []byte, pub ed25519.PublicKey, keyID string) error {
	params, err := g.verifier(pub).Verify(r, body)
	return g.judge(params, err, keyID)
}

func refused(err error) error {
	return fault.With(fault.Wrap(fault.ErrUnauthenticated, err, "the request is not signed by the runner's key"), fault.Code("signature_refused"))
}

// judge refuses what httpsig did, a signature of another key, and one that was
// used before.
func (g *Gate) judge(params httpsig.Params, err error, keyID string) error {
	switch {
	case errors.Is(err, httpsig.ErrStale):
		return fault.With(fault.Wrap(fault.ErrUnauthenticated, err, "the signature is more than %s in the past or in the future", MaxSkew),
			fault.Code("signature_stale"), fault.Remedy("set the machine's clock"))
	case err != nil:
		return refused(err)
	case params.KeyID != keyID:
		return fault.With(fault.Newf(fault.ErrUnauthenticated, "the signature names another key"), fault.Code("signature_refused"))
	}
	switch err := g.nonces.Use(params, g.now()); {
	case errors.Is(err, httpsig.ErrTooMany):
		return fault.Wrap(fault.ErrRateLimited, err, "too many requests from one runner")
	case err != nil:
		return fault.With(fault.Wrap(fault.ErrUnauthenticated, err, "this request was seen before"), fault.Code("signature_replayed"))
	}
	return nil
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
