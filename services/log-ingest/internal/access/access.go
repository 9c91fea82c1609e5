// Package access says who may use which route of log-ingest, and for which
// stream. Two kinds of callers exist: accounts with a user token, or
// with the session of a browser that ctl-api sends on, who read; and
// the attempt of a job with its log token, which appends to its one stream.
package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/httpserver"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/logdb"
	"github.com/berth-dev/berth/services/log-ingest/internal/database"
)

// Routes has one row for every operation of openapi/log-ingest.yaml.
var Routes = auth.Routes{
	"GetStream":     auth.LogsRead,
	"ListRecords":   auth.LogsRead,
	"TailStream":    auth.LogsRead,
	"AppendRecords": auth.LogsWrite,
	"FinishStream":  auth.LogsWrite,
}

// Authenticator knows user tokens and log tokens. It is safe for concurrent
// use.
type Authenticator struct {
	store *database.Store

	mu sync.Mutex
	// owners of log tokens, which never change. That a token is there says
	// nothing about whether it is good.
	owners map[[sha256.Size]byte]auth.Principal
}

// maxOwners is about 20 MB; when it is reached, all is asked again.
const maxOwners = 100_000

// NewAuthenticator makes an Authenticator.
func NewAuthenticator(st *database.Store) *Authenticator {
	return &Authenticator{store: st, owners: map[[sha256.Size]byte]auth.Principal{}}
}

// Authenticate answers who holds a token. Whether a log token was revoked or
// has expired is not looked at here but under the lock of its stream, so that
// the voiding of an attempt and its last append come one after the other.
func (a *Authenticator) Authenticate(ctx context.Context, bearer string) (auth.Principal, error) {
	switch {
	case auth.WellFormed(auth.TokenPrefix, bearer), auth.WellFormed(auth.BrowserPrefix, bearer):
		return a.user(ctx, auth.Hash(bearer))
	case auth.WellFormed(auth.LogPrefix, bearer):
		return a.attempt(ctx, [sha256.Size]byte(auth.Hash(bearer)))
	}
	return auth.Principal{}, auth.ErrBadToken
}

func (a *Authenticator) user(ctx context.Context, hash []byte) (p auth.Principal, err error) {
	org, err := auth.OrgOfToken(ctx, a.store.Store, hash)
	if err != nil {
		return p, err
	}
	err = a.store.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) error {
		p, _, err = auth.User(ctx, tx.Tx, hash)
		return err
	})
	return p, err
}

func (a *Authenticator) attempt(ctx context.Context, hash [sha256.Size]byte) (auth.Principal, error) {
	a.mu.Lock()
	p, known := a.owners[hash]
	a.mu.Unlock()
	if known {
		return p, nil
	}
	org, err := auth.OrgOf(ctx, a.store.Store, func(ctx context.Context, tx *store.Tx) (string, error) {
		return logdb.New(tx.DB()).OrgOfLogToken(ctx, hash[:])
	})
	if err != nil {
		return auth.Principal{}, err
	}
	p = auth.Principal{Kind: auth.KindLog, OrgID: org}
	err = a.store.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) (err error) {
		p.StreamID, err = tx.StreamOfLogToken(ctx, hash[:])
		return err
	})
	if err != nil {
		return auth.Principal{}, fmt.Errorf("look up log token: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.owners) >= maxOwners {
		clear(a.owners)
	}
	a.owners[hash] = p
	return p, nil
}

// Reach is the middleware behind auth.Routes.Authorize. It lets only those
// through who may use the stream that the route names; to others it does not
// exist.
func Reach(st *database.Store) gin.HandlerFunc {
	return func(c *gin.Context) {
		p := auth.PrincipalOf(c.Request.Context())
		if err := reaches(c.Request.Context(), st, p, c.Param("stream")); err != nil {
			httpserver.WriteProblem(c, err)
		}
	}
}

func reaches(ctx context.Context, st *database.Store, p auth.Principal, stream string) error {
	if p.Kind == auth.KindLog {
		if p.StreamID != stream {
			return NoStream(stream)
		}
		return nil
	}
	return st.Tx(ctx, p.OrgID, func(ctx context.Context, tx *database.Tx) error {
		at, err := tx.LocateLogStream(ctx, stream)
		switch {
		case errors.Is(err, fault.ErrNotFound):
			return NoStream(stream)
		case err != nil:
			return fmt.Errorf("locate log stream: %w", err)
		case !p.Scope(auth.LogsRead).Includes(auth.Location{CustomerID: at.CustomerID, AppID: at.AppID, InstallID: at.InstallID}):
			return NoStream(stream)
		}
		return nil
	})
}

// NoStream is the answer for streams that do not exist, or not for the caller.
func NoStream(stream string) error {
	return fault.Newf(fault.ErrNotFound, "there is no log stream %q", stream)
}
