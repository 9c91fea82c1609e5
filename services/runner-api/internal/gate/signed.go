package gate

import (
	"context"
	"crypto/ed25519"
	"errors"
	"net/http"

	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/runner-api/internal/session"
)

type contextKey int

const (
	sessionKey contextKey = iota
	requestKey
)

// request is a signed request whose key is known only to the handler: it
// stands in the body or in a row that the body names.
type request struct {
	gate *Gate
	http *http.Request
	body []byte
}

// WithSession puts the session of a request into the context.
func WithSession(ctx context.Context, s *session.Session) context.Context {
	return context.WithValue(ctx, sessionKey, s)
}

// SessionOf returns the session of a request. It is there in every handler of
// a route that needs one; without it the request is refused.
func SessionOf(ctx context.Context) (*session.Session, error) {
	s, ok := ctx.Value(sessionKey).(*session.Session)
	if !ok {
		return nil, fault.Newf(fault.ErrUnauthenticated, "a session is needed")
	}
	return s, nil
}

// WithSigned keeps a request for VerifySigned.
func (g *Gate) WithSigned(ctx context.Context, r *http.Request, body []byte) context.Context {
	return context.WithValue(ctx, requestKey, &request{gate: g, http: r, body: body})
}

// VerifySigned checks that the request in the context was signed by pub, under
// the name keyID.
func VerifySigned(ctx context.Context, pub ed25519.PublicKey, keyID string) error {
	r, ok := ctx.Value(requestKey).(*request)
	if !ok {
		return errors.New("the route does not keep its request for a signature")
	}
	return r.gate.verify(r.http, r.body, pub, keyID)
}
