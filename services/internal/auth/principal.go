// Package auth knows who calls a service and what they may do: principals,
// roles and permissions, tokens, the table of operations, and the middleware
// that holds callers to it. Who stands behind a token is found by the service's
// Authenticator; where inside an org an object stands is found by the service
// that knows its nouns, and a Scope says whether grants reach there.
//
// Identity comes only from the verified credential, never from the request.
package auth

import (
	"context"
	"slices"
)

// Kind of a principal: which sort of credential it showed.
type Kind string

// The kinds.
const (
	KindUser   Kind = "user"   // an account's token, brt_…
	KindRunner Kind = "runner" // a runner's session, brs_…
	KindLog    Kind = "log"    // one attempt's log token, blt_…
	KindSystem Kind = "system" // a part of Berth itself
)

// Grant is a role everywhere in the org, or only within one customer, app or
// install: at most one of the three is set.
type Grant struct {
	Role                         Role
	CustomerID, AppID, InstallID string
}

// Everywhere reports whether the grant is for the whole org.
func (g Grant) Everywhere() bool { return g.CustomerID == "" && g.AppID == "" && g.InstallID == "" }

// Principal is who asks. The zero Principal may do nothing.
type Principal struct {
	Kind  Kind
	OrgID string

	// Of a user.
	AccountID   string
	AccountName string
	TokenID     string
	Grants      []Grant

	// Of a runner. InstallID is empty for a Build Runner.
	RunnerID  string
	InstallID string
	SessionID string
	Epoch     int64

	// Of a log token.
	StreamID string
}

// ID names the principal in logs and as the owner of Idempotency-Keys.
func (p Principal) ID() string {
	for _, id := range []string{p.AccountID, p.RunnerID, p.StreamID} {
		if id != "" {
			return id
		}
	}
	return string(p.Kind)
}

// GrantsOf returns the grants that include the permission; none means no.
// Runners, log tokens and Berth itself hold theirs by their kind.
func (p Principal) GrantsOf(permission Permission) []Grant {
	if role, ok := roleOfKind[p.Kind]; ok {
		if role.Allows(permission) {
			return []Grant{{Role: role}}
		}
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.Grants), func(g Grant) bool { return !g.Role.Allows(permission) })
}

// May reports whether the principal has the permission anywhere.
func (p Principal) May(permission Permission) bool { return len(p.GrantsOf(permission)) > 0 }

type contextKey struct{}

// NewContext puts the verified principal into the context.
func NewContext(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// PrincipalOf returns who asks. It is the zero Principal, who may do nothing,
// outside of an authenticated request.
func PrincipalOf(ctx context.Context) Principal {
	p, _ := ctx.Value(contextKey{}).(Principal)
	return p
}
