package depot

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/berth-dev/berth/services/builder/internal/database"
	"github.com/berth-dev/berth/services/builder/internal/registry"
	"github.com/berth-dev/berth/services/internal/fault"
)

// Tokens looks registry tokens up in the database: those of runners, which
// runner-api makes, those of people, which ctl-api makes, and the builder's own.
type Tokens struct {
	store *database.Store

	mu sync.Mutex
	// orgs are those of tokens that were asked for lately: a token stays with its
	// org. Whether it is still good is asked each time.
	orgs map[string]string
}

var _ registry.TokenLookup = (*Tokens)(nil)

// knownTokens is how many tokens have their org kept, in bytes some 2 MB.
const knownTokens = 10_000

// NewTokens looks tokens up in the store.
func NewTokens(store *database.Store) *Tokens {
	return &Tokens{store: store, orgs: map[string]string{}}
}

// LookupRegistryToken implements [registry.TokenLookup]. The token's row says
// which org may be seen; nothing that the client says does.
func (t *Tokens) LookupRegistryToken(ctx context.Context, hash []byte) (registry.Grant, error) {
	org, err := t.orgOf(ctx, hash)
	if err != nil {
		return registry.Grant{}, fmt.Errorf("registry token: %w", err)
	}
	if org == "" {
		return registry.Grant{}, registry.ErrUnauthenticated
	}
	var grant registry.Grant
	err = t.store.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) error {
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

// orgOf finds the org of a token, "" when there is no such token.
func (t *Tokens) orgOf(ctx context.Context, hash []byte) (org string, err error) {
	t.mu.Lock()
	org, known := t.orgs[string(hash)]
	t.mu.Unlock()
	if known {
		return org, nil
	}
	err = t.store.System(ctx, func(ctx context.Context, tx *database.Tx) (err error) {
		org, err = tx.BuilderOrgOfToken(ctx, hash)
		return err
	})
	if err != nil || org == "" {
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.orgs) >= knownTokens {
		clear(t.orgs) // they are found again
	}
	t.orgs[string(hash)] = org
	return org, nil
}
