package access

import (
	"context"
	"time"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/db"
)

// NewToken is a token whose secret has not been shown yet.
type NewToken struct {
	Row    db.Token
	Secret string
}

// CreateToken makes a token of an account. expires may be nil.
func CreateToken(ctx context.Context, tx *store.Tx, accountID, name string, expires *time.Time) (NewToken, error) {
	secret, hash, shown := auth.NewToken()
	row, err := tx.InsertToken(ctx, db.InsertTokenParams{
		ID: id.New(id.Token), AccountID: accountID, Name: name, Prefix: shown, Hash: hash, ExpiresAt: expires,
	})
	return NewToken{Row: row, Secret: secret}, err
}

// NewOrg is an org that was just made, with the token of its admin.
type NewOrg struct {
	Org   db.Org
	Admin db.Account
	Token NewToken
}

// CreateOrg makes an org with its dispatch key, an admin with the given roles,
// and the admin's first token. actor is who asked for it.
func CreateOrg(ctx context.Context, st *store.Store, keys *Keyring, name, admin, actor string, roles ...auth.Role) (NewOrg, error) {
	var made NewOrg
	err := st.Tx(ctx, id.New(id.Org), func(ctx context.Context, tx *store.Tx) (err error) {
		made, err = createOrg(ctx, tx, keys, name, admin, actor, roles)
		return err
	})
	return made, err
}

func createOrg(ctx context.Context, tx *store.Tx, keys *Keyring, name, admin, actor string, roles []auth.Role) (made NewOrg, err error) {
	if made.Org, err = tx.InsertOrg(ctx, name); err != nil {
		return made, err
	}
	if err := keys.createDispatch(ctx, tx); err != nil {
		return made, err
	}
	if made.Admin, err = tx.InsertAccount(ctx, db.InsertAccountParams{ID: id.New(id.Account), Kind: "user", Name: admin}); err != nil {
		return made, err
	}
	for _, role := range roles {
		if _, err := tx.InsertGrant(ctx, db.InsertGrantParams{ID: id.New(id.Grant), AccountID: made.Admin.ID, Role: string(role)}); err != nil {
			return made, err
		}
	}
	if made.Token, err = CreateToken(ctx, tx, made.Admin.ID, "first", nil); err != nil {
		return made, err
	}
	return made, keys.Audit(ctx, tx, actor, "create org "+name)
}
