// Package access says who may use which route of log-ingest, and for which
// stream. Two kinds of callers exist: accounts with a user token, who read; and
// the attempt of a job with its log token, which appends to its one stream.
package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/httpserver"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/db"
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
	store *store.Store

	mu sync.Mutex
	// owners of log tokens, which never change. That a token is there says
	// nothing about whether it is good.
	owners map[[sha256.Size]byte]auth.Principal
}

// maxOwners is about 20 MB; when it is reached, all is asked again.
const maxOwners = 100_000

// NewAuthenticator makes an Authenticator.
func NewAuthenticator(st *store.Store) *Authenticator {
	return &Authenticator{store: st, owners: map[[sha256.Size]byte]auth.Principal{}}
}

// Authenticate answers who holds a token. Whether a log token was revoked or
// has expired is not looked at here but under the lock of its stream, so that
// the voiding of an attempt and its last append come one after the other.
func (a *Authenticator) Authenticate(ctx context.Context, bearer string) (auth.Principal, error) {
	switch {
	case auth.WellFormed(auth.TokenPrefix, bearer):
		return a.user(ctx, auth.Hash(bearer))
	case auth.WellFormed(auth.LogPrefix, bearer):
		return a.attempt(ctx, [sha256.Size]byte(auth.Hash(bearer)))
	}
	return auth.Principal{}, auth.ErrBadToken
}

func (a *Authenticator) user(ctx context.Context, hash []byte) (p auth.Principal, err error) {
	org, err := a.org(ctx, func(ctx context.Context, q *db.Queries) (string, error) {
		return q.OrgOfSecret(ctx, db.OrgOfSecretParams{Kind: "token", SecretHash: hash})
	})
	if err != nil {
		return p, err
	}
	err = a.store.Tx(ctx, org, func(ctx context.Context, tx *store.Tx) error {
		row, err := tx.AuthenticateToken(ctx, hash)
		if errors.Is(err, fault.ErrNotFound) {
			return auth.ErrBadToken
		}
		if err != nil {
			return fmt.Errorf("look up user token: %w", err)
		}
		grants, err := tx.ListGrantsOfAccounts(ctx, []string{row.AccountID})
		if err != nil {
			return fmt.Errorf("read grants: %w", err)
		}
		p = auth.Principal{Kind: auth.KindUser, OrgID: org, AccountID: row.AccountID, AccountName: row.AccountName, TokenID: row.TokenID}
		for _, g := range grants {
			p.Grants = append(p.Grants, auth.Grant{
				Role: auth.Role(g.Role), CustomerID: value(g.CustomerID), AppID: value(g.AppID), InstallID: value(g.InstallID),
			})
		}
		return nil
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
	org, err := a.org(ctx, func(ctx context.Context, q *db.Queries) (string, error) { return q.OrgOfLogToken(ctx, hash[:]) })
	if err != nil {
		return auth.Principal{}, err
	}
	p = auth.Principal{Kind: auth.KindLog, OrgID: org}
	err = a.store.Tx(ctx, org, func(ctx context.Context, tx *store.Tx) (err error) {
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

// org asks which org a token belongs to; none makes it a bad token.
func (a *Authenticator) org(ctx context.Context, ask func(context.Context, *db.Queries) (string, error)) (org string, err error) {
	err = a.store.System(ctx, func(ctx context.Context, q *db.Queries) error {
		org, err = ask(ctx, q)
		return err
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("look up the org of a token: %w", err)
	case org == "":
		return "", auth.ErrBadToken
	}
	return org, nil
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// Reach is the middleware behind auth.Routes.Authorize. It lets only those
// through who may use the stream that the route names; to others it does not
// exist.
func Reach(st *store.Store) gin.HandlerFunc {
	return func(c *gin.Context) {
		p, _ := auth.FromContext(c.Request.Context())
		if err := reaches(c.Request.Context(), st, p, c.Param("stream")); err != nil {
			httpserver.WriteProblem(c, err)
		}
	}
}

func reaches(ctx context.Context, st *store.Store, p auth.Principal, stream string) error {
	if p.Kind == auth.KindLog {
		if p.StreamID != stream {
			return NoStream(stream)
		}
		return nil
	}
	return st.Tx(ctx, p.OrgID, func(ctx context.Context, tx *store.Tx) error {
		at, err := tx.LocateLogStream(ctx, stream)
		switch {
		case errors.Is(err, fault.ErrNotFound):
			return NoStream(stream)
		case err != nil:
			return fmt.Errorf("locate log stream: %w", err)
		case !inside(p.GrantsOf(auth.LogsRead), at):
			return NoStream(stream)
		}
		return nil
	})
}

// inside reports whether one of the grants reaches to a place.
func inside(grants []auth.Grant, at db.LocateLogStreamRow) bool {
	same := func(grant, place string) bool { return grant != "" && grant == place }
	return slices.ContainsFunc(grants, func(g auth.Grant) bool {
		return g.Everywhere() || same(g.InstallID, at.InstallID) || same(g.CustomerID, at.CustomerID) || same(g.AppID, at.AppID)
	})
}

// NoStream is the answer for streams that do not exist, or not for the caller.
func NoStream(stream string) error {
	return fault.Newf(fault.ErrNotFound, "there is no log stream %q", stream)
}
