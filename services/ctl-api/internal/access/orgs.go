package access

import (
	"context"
	"time"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// NewToken is a token whose secret has not been shown yet.
type NewToken struct {
	Row    ctldb.Token
	Secret string
}

// TokenSpec is a token to be made.
type TokenSpec struct {
	AccountID, Name string
	// Expires is nil for one that is good until it is revoked.
	Expires *time.Time
	// MadeWith is the token that asks for it; empty when Berth itself does.
	MadeWith string
}

// CreateToken makes a token of an account. It never expires later than the one
// that asks for it, which must be good.
func CreateToken(ctx context.Context, tx *database.Tx, spec TokenSpec) (NewToken, error) {
	expires := spec.Expires
	if spec.MadeWith != "" {
		parent, err := tx.LockToken(ctx, spec.MadeWith)
		if err != nil {
			return NewToken{}, err
		}
		if parent.RevokedAt != nil || parent.EndedAt != nil {
			return NewToken{}, auth.ErrBadToken
		}
		expires = sooner(expires, parent.ExpiresAt)
	}
	secret, hash, shown := auth.NewToken()
	row, err := tx.InsertToken(ctx, ctldb.InsertTokenParams{
		ID: id.New(id.Token), AccountID: spec.AccountID, Name: spec.Name, Prefix: shown, Hash: hash, ExpiresAt: expires, MadeWith: optional.Of(spec.MadeWith),
	})
	return NewToken{Row: row, Secret: secret}, err
}

// sooner is the earlier of two ends; nil is never.
func sooner(a, b *time.Time) *time.Time {
	if a == nil || (b != nil && b.Before(*a)) {
		return b
	}
	return a
}

// NewOrg is an org that was just made, with the token of its admin.
type NewOrg struct {
	Org   ctldb.Org
	Admin ctldb.Account
	Token NewToken
}

// OrgSpec is an org to be made.
type OrgSpec struct {
	Name  string
	Admin string      // the name of its first account
	Roles []auth.Role // of the admin
	Actor string      // who asks for it
}

// CreateOrg makes an org with its dispatch key, its admin, and the admin's first
// token.
func CreateOrg(ctx context.Context, st *database.Store, ring *keys.Ring, spec OrgSpec) (NewOrg, error) {
	var made NewOrg
	err := st.Tx(ctx, id.New(id.Org), func(ctx context.Context, tx *database.Tx) (err error) {
		made, err = createOrg(ctx, tx, ring, spec)
		return err
	})
	return made, err
}

func createOrg(ctx context.Context, tx *database.Tx, ring *keys.Ring, spec OrgSpec) (made NewOrg, err error) {
	if made.Org, err = tx.InsertOrg(ctx, spec.Name); err != nil {
		return made, err
	}
	if err := ring.CreateDispatch(ctx, tx); err != nil {
		return made, err
	}
	if made.Admin, err = tx.InsertAccount(ctx, ctldb.InsertAccountParams{ID: id.New(id.Account), Kind: "user", Name: spec.Admin}); err != nil {
		return made, err
	}
	for _, role := range spec.Roles {
		if _, err := tx.InsertGrant(ctx, ctldb.InsertGrantParams{ID: id.New(id.Grant), AccountID: made.Admin.ID, Role: string(role)}); err != nil {
			return made, err
		}
	}
	if made.Token, err = CreateToken(ctx, tx, TokenSpec{AccountID: made.Admin.ID, Name: "first"}); err != nil {
		return made, err
	}
	return made, ring.Audit(ctx, tx, spec.Actor, "create org "+spec.Name)
}
