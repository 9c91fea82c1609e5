package depot

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/services/builder/internal/database"
	"github.com/berth-dev/berth/services/builder/internal/registry"
	"github.com/berth-dev/berth/services/internal/fault"
)

// Tokens looks registry tokens up in the database: those of runners, which
// runner-api makes, those of people, which ctl-api makes, and the builder's own.
type Tokens struct{ Store *database.Store }

var _ registry.TokenLookup = Tokens{}

// LookupRegistryToken implements [registry.TokenLookup]. The token's row says
// which org may be seen; nothing that the client says does.
func (t Tokens) LookupRegistryToken(ctx context.Context, hash []byte) (registry.Grant, error) {
	var org string
	err := t.Store.System(ctx, func(ctx context.Context, tx *database.Tx) (err error) {
		org, err = tx.BuilderOrgOfToken(ctx, hash)
		return err
	})
	if err != nil {
		return registry.Grant{}, fmt.Errorf("registry token: %w", err)
	}
	if org == "" {
		return registry.Grant{}, registry.ErrUnauthenticated
	}
	var grant registry.Grant
	err = t.Store.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) error {
		row, err := tx.BuilderToken(ctx, hash)
		if errors.Is(err, fault.ErrNotFound) {
			return registry.ErrUnauthenticated // dropped meanwhile
		}
		if err != nil {
			return fmt.Errorf("registry token: %w", err)
		}
		grant = registry.Grant{OrgID: row.OrgID, RunnerID: row.RunnerID, RepositoryPrefix: row.Repositories, ExpiresAt: row.ExpiresAt}
		for _, action := range row.Actions {
			grant.Actions = append(grant.Actions, registry.Action(action))
		}
		if row.RevokedAt != nil {
			grant.RevokedAt = *row.RevokedAt
		}
		return nil
	})
	return grant, err
}
