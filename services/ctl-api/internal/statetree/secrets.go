package statetree

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// secrets adds what is known of the customer's secrets, of those that the release has. The
// values are the runner's to add.
func (b *builder) secrets(ctx context.Context, parts *interpolate.Parts, app *appconfig.App) error {
	if app == nil || len(app.Secrets) == 0 {
		return nil
	}
	rows, err := secretRows(ctx, b.tx, b.Install.ID)
	if err != nil {
		return err
	}
	parts.Secrets = map[string]interpolate.Secret{}
	for _, s := range app.Secrets {
		row := rows[s.Name]
		parts.Secrets[s.Name] = interpolate.Secret{
			Exists: row.Present, Version: int(row.Version), Timestamp: optional.Value(row.SetAt),
		}
	}
	return nil
}

// withoutCopies drops what a tree has no value for: secrets are not in a cloud's secret
// manager, nor copied to clusters. A template that reads where fails and says so.
func withoutCopies(tree map[string]any, rehearsed bool) {
	secrets, _ := tree["secrets"].(map[string]any)
	for _, one := range secrets {
		if one, ok := one.(map[string]any); ok && !rehearsed {
			for _, key := range []string{"arn", "kubernetes_namespace", "kubernetes_name", "kubernetes_key"} {
				delete(one, key)
			}
		}
	}
}

func secretRows(ctx context.Context, tx *database.Tx, installID string) (map[string]ctldb.InstallSecret, error) {
	list, err := tx.SecretsOfInstall(ctx, installID)
	if err != nil {
		return nil, fmt.Errorf("read secrets: %w", err)
	}
	rows := map[string]ctldb.InstallSecret{}
	for _, row := range list {
		rows[row.Name] = row
	}
	return rows, nil
}
