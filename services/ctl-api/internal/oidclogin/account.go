package oidclogin

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

var (
	errNoRole  = errors.New("no group of this person gives a role")
	errRemoved = errors.New("the account of this person was removed")
)

// recognise finds the account of a person, or makes it, and gives it the role of its
// groups. Who has none any more keeps the account, and no grant.
func (l *Login) recognise(ctx context.Context, org string, who Person) (accountID string, err error) {
	var role auth.Role
	err = l.Store.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) error {
		if err := tx.LockIdentities(ctx); err != nil {
			return err
		}
		known, err := tx.FindIdentity(ctx, ctldb.FindIdentityParams{Issuer: who.Issuer, Subject: who.Subject})
		isNew := errors.Is(err, fault.ErrNotFound)
		if err != nil && !isNew {
			return err
		}
		if known.Disabled {
			return errRemoved
		}
		admins, err := tx.CountIdentityAdmins(ctx, known.ID)
		if err != nil {
			return err
		}
		role = l.rules.RoleOf(who, int(admins))
		name := known.Name
		accountID = known.ID
		if isNew {
			if role == "" {
				return errNoRole
			}
			if accountID, name, err = l.addAccount(ctx, tx, who); err != nil {
				return err
			}
		}
		changed, err := tx.SetGrantOfIdentity(ctx, ctldb.SetGrantOfIdentityParams{AccountID: accountID, Role: string(role), ID: id.New(id.Grant), CreatedBy: who.Issuer})
		if err != nil || !changed {
			return err
		}
		l.Revoked(tx, accountID) // its cached grants
		what := fmt.Sprintf("role of %s is %s, by the groups of %s", name, role, who.Issuer)
		if role == "" {
			what = fmt.Sprintf("take the role of %s, by the groups of %s", name, who.Issuer)
		}
		return l.Keys.Audit(ctx, tx, name, what)
	})
	if err == nil && role == "" {
		err = errNoRole
	}
	return accountID, err
}

// addAccount makes an account. A name that is taken gets a number: nobody becomes another
// member by calling themselves so.
func (l *Login) addAccount(ctx context.Context, tx *database.Tx, who Person) (accountID, name string, err error) {
	name = who.AccountName()
	for n := 2; ; n++ {
		_, err := tx.FindAccount(ctx, name)
		if errors.Is(err, fault.ErrNotFound) {
			break
		}
		if err != nil {
			return "", "", err
		}
		name = fmt.Sprintf("%s-%d", who.AccountName(), n)
	}
	account, err := tx.InsertAccount(ctx, ctldb.InsertAccountParams{ID: id.New(id.Account), Kind: "user", Name: name, Email: optional.Of(who.Email)})
	if err != nil {
		return "", "", err
	}
	if err := tx.InsertIdentity(ctx, ctldb.InsertIdentityParams{Issuer: who.Issuer, Subject: who.Subject, AccountID: account.ID}); err != nil {
		return "", "", err
	}
	return account.ID, name, l.Keys.Audit(ctx, tx, name, "add member "+name+", whom "+who.Issuer+" vouches for")
}
