package access

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/berth-dev/berth/pkg/durable"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
)

// bootstrapActor is named in the chain for what nobody with a token did.
const bootstrapActor = "bootstrap"

// Bootstrapped says what Bootstrap found or made.
type Bootstrapped struct {
	OrgID   string
	Created bool // the org is new
	Token   bool // a new token was written to the file
}

// Bootstrap makes sure that there is an org of this name and that the file
// holds a good token of its admin, who may also make further orgs. It changes
// nothing when both are so.
func Bootstrap(ctx context.Context, st *database.Store, ring *keys.Ring, orgName, tokenFile string) (Bootstrapped, error) {
	org, err := OrgNamed(ctx, st, orgName)
	if err != nil {
		return Bootstrapped{}, err
	}
	if org == "" {
		made, err := CreateOrg(ctx, st, ring, OrgSpec{
			Name: orgName, Admin: "admin", Roles: []auth.Role{auth.RolePlatform, auth.RoleAdmin}, Actor: bootstrapActor,
		})
		if err != nil {
			return Bootstrapped{}, err
		}
		return Bootstrapped{OrgID: made.Org.OrgID, Created: true, Token: true}, writeToken(tokenFile, made.Token.Secret)
	}
	done := Bootstrapped{OrgID: org}
	good, err := holdsToken(ctx, st, org, tokenFile)
	if err != nil || good {
		return done, err
	}
	var fresh NewToken
	err = st.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) error {
		admin, err := tx.FindAccount(ctx, "admin")
		if err != nil {
			return fmt.Errorf("find the admin of org %s: %w", orgName, err)
		}
		if fresh, err = CreateToken(ctx, tx, TokenSpec{AccountID: admin.ID, Name: "bootstrap"}); err != nil {
			return err
		}
		return ring.Audit(ctx, tx, bootstrapActor, "create token "+fresh.Row.ID+" of admin")
	})
	if err != nil {
		return done, err
	}
	done.Token = true
	return done, writeToken(tokenFile, fresh.Secret)
}

// OrgNamed is the id of the org with this name, or "". It looks through all orgs; there is no way to ask across them.
func OrgNamed(ctx context.Context, st *database.Store, name string) (string, error) {
	var ids []string
	err := st.System(ctx, func(ctx context.Context, tx *database.Tx) (err error) {
		ids, err = tx.AllOrgIDs(ctx)
		return err
	})
	if err != nil {
		return "", err
	}
	for _, org := range ids {
		found := false
		err := st.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) error {
			row, err := tx.GetOrg(ctx)
			found = row.Name == name
			return err
		})
		if err != nil {
			return "", err
		}
		if found {
			return org, nil
		}
	}
	return "", nil
}

// holdsToken says whether the file holds a token of the org that works.
func holdsToken(ctx context.Context, st *database.Store, org, file string) (bool, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read token file: %w", err)
	}
	p, err := NewAuthenticator(st, nil).Authenticate(ctx, strings.TrimSpace(string(text)))
	if errors.Is(err, fault.ErrUnauthenticated) {
		return false, nil
	}
	return p.OrgID == org, err
}

// writeToken replaces the file by one that only its owner reads.
func writeToken(file, secret string) error {
	if err := durable.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		return fmt.Errorf("write token file: %w", err)
	}
	return nil
}
