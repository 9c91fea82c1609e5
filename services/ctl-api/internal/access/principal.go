package access

import (
	"context"
	"time"
)

// Principal is who asks: the account behind a verified token.
type Principal struct {
	OrgID       string
	OrgName     string
	AccountID   string
	AccountName string
	AccountKind string // user or service
	TokenID     string
	ExpiresAt   time.Time // of the token; zero: never
	Grants      []Grant
}

// May says where the principal has a permission.
func (p Principal) May(permission Permission) Scope { return ScopeOf(p.Grants, permission) }

type principalKey struct{}

// WithPrincipal puts the authenticated principal into the context.
func WithPrincipal(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// PrincipalOf returns who asks. It is the zero Principal, who may do nothing,
// outside of an authenticated request.
func PrincipalOf(ctx context.Context) Principal {
	p, _ := ctx.Value(principalKey{}).(Principal)
	return p
}
