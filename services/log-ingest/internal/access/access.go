// Package access says who may use which route of log-ingest, and for whom. Two
// kinds of callers exist: people and machines with a user token, who read; and
// the attempt of a job with its log token, which appends to its one stream.
package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"

	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/db"
)

// Credential is what a route asks for.
type Credential string

// The credentials. The prefix of a token tells which one it is.
const (
	// UserToken of an account with the permission logs:read for the stream:
	// every role but platform has it, as far as its grant reaches.
	UserToken Credential = "brt_"
	// LogToken of the stream that the route names.
	LogToken Credential = "blt_"
)

// Route is what one route of openapi/log-ingest.yaml asks of its caller.
type Route struct {
	Method     string
	Path       string // as in the contract
	Credential Credential
}

// Routes has one row for every route; a route without a row answers nobody, and
// fails the test of this table.
var Routes = []Route{
	{"GET", "/streams/{stream}", UserToken},
	{"GET", "/streams/{stream}/records", UserToken},
	{"GET", "/streams/{stream}/tail", UserToken},
	{"POST", "/streams/{stream}/records", LogToken},
	{"POST", "/streams/{stream}/finish", LogToken},
}

// Caller is who asks, as far as the route needs to know it.
type Caller struct {
	// OrgID is set for a user token; everything is read in this org.
	OrgID string
	// TokenHash is that of the token. For a log token it is all that is known
	// yet: whether it is good is read under the lock of its stream.
	TokenHash [sha256.Size]byte
}

type callerKey struct{}

// WithCaller puts the caller into the context.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns who asks; the zero Caller, who may do nothing, outside of a
// checked request.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

var errToken = fault.With(fault.Newf(fault.ErrUnauthenticated, "the token is missing, unknown, expired or revoked"),
	fault.Remedy("send it as `Authorization: Bearer …`: a user token to read, the log token of the stream to append"))

// Check answers who asks with an Authorization header for a stream, or refuses.
// A stream that the caller must not know about is answered as if it did not
// exist.
func Check(ctx context.Context, st *store.Store, route Route, authorization, stream string) (Caller, error) {
	scheme, token, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") || !strings.HasPrefix(token, string(route.Credential)) {
		return Caller{}, errToken
	}
	caller := Caller{TokenHash: sha256.Sum256([]byte(token))}
	if route.Credential == LogToken {
		return caller, nil
	}
	err := st.System(ctx, func(ctx context.Context, q *db.Queries) (err error) {
		caller.OrgID, err = q.OrgOfSecret(ctx, db.OrgOfSecretParams{Kind: "token", SecretHash: caller.TokenHash[:]})
		return err
	})
	if err != nil {
		return Caller{}, err
	}
	if caller.OrgID == "" {
		return Caller{}, errToken
	}
	return caller, st.Tx(ctx, caller.OrgID, func(ctx context.Context, tx *store.Tx) error {
		may, err := tx.MayReadLogStream(ctx, db.MayReadLogStreamParams{StreamID: stream, TokenHash: caller.TokenHash[:]})
		switch {
		case errors.Is(err, fault.ErrNotFound):
			return errToken
		case err != nil:
			return err
		case !may.Reads:
			return fault.With(fault.Newf(fault.ErrForbidden, "your role does not include the permission %q", "logs:read"),
				fault.Remedy("ask an admin of your org for a role that does"))
		case !may.Inside:
			return fault.Newf(fault.ErrNotFound, "there is no log stream %q", stream)
		}
		return nil
	})
}
