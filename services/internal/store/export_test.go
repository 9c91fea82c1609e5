package store

import (
	"context"
	"io/fs"

	"github.com/jackc/pgx/v5/stdlib"
)

// WorkingDSN is what EnsureRoles asks before it sets a new password.
var WorkingDSN = workingDSN

// MigrateFiles applies just these migrations, and River's, as a build that had
// no others would have.
func MigrateFiles(ctx context.Context, dsn string, files fs.FS) error {
	cfg, err := ownerConfig(dsn)
	if err != nil {
		return err
	}
	pool := stdlib.OpenDB(*cfg, stdlib.OptionAfterConnect(becomeOwner))
	defer pool.Close()
	provider, err := newProvider(pool, dsn, files, nil)
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}
