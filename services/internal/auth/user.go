package auth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/shareddb"
)

// OrgOf asks which org a secret belongs to, across all orgs; none makes it a bad
// token.
func OrgOf(ctx context.Context, st *store.Store, ask func(context.Context, *store.Tx) (org string, err error)) (org string, err error) {
	err = st.System(ctx, func(ctx context.Context, tx *store.Tx) error {
		org, err = ask(ctx, tx)
		return err
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("look up the org of a token: %w", err)
	case org == "":
		return "", ErrBadToken
	}
	return org, nil
}

// OrgOfToken is the org of an account's token, given its hash.
func OrgOfToken(ctx context.Context, st *store.Store, hash []byte) (string, error) {
	return OrgOf(ctx, st, func(ctx context.Context, tx *store.Tx) (string, error) {
		return shareddb.New(tx.DB()).OrgOfSecret(ctx, shareddb.OrgOfSecretParams{Kind: "token", SecretHash: hash})
	})
}

// User is whose token this is, with the grants of the account, in a transaction
// of the token's org. expires may be nil.
func User(ctx context.Context, tx *store.Tx, hash []byte) (p Principal, expires *time.Time, err error) {
	q := shareddb.New(tx.DB())
	row, err := q.AuthenticateToken(ctx, hash)
	if errors.Is(err, fault.ErrNotFound) {
		return p, nil, ErrBadToken
	}
	if err != nil {
		return p, nil, fmt.Errorf("look up user token: %w", err)
	}
	grants, err := q.ListGrantsOfAccounts(ctx, []string{row.AccountID})
	if err != nil {
		return p, nil, fmt.Errorf("read grants: %w", err)
	}
	p = Principal{Kind: KindUser, OrgID: tx.OrgID(), AccountID: row.AccountID, AccountName: row.AccountName, TokenID: row.TokenID}
	for _, g := range grants {
		p.Grants = append(p.Grants, Grant{
			Role: Role(g.Role), CustomerID: optional.Value(g.CustomerID), AppID: optional.Value(g.AppID), InstallID: optional.Value(g.InstallID),
		})
	}
	return p, row.ExpiresAt, nil
}
