package workflow

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/orders"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// gatherSecrets writes down what the release says of the customer's secrets, and says
// whether the workflow waits for some. Those of a rehearsal are made up.
func gatherSecrets(ctx context.Context, tx *database.Tx, b basis, app *appconfig.App, in *flow.PlanInput) error {
	if b.install.Rehearsal != nil || !brings[b.Kind] {
		return nil
	}
	names := []string{}
	for _, d := range orders.Secrets(app) {
		names = append(names, d.Name)
		in.Secrets = in.Secrets || d.Needed()
		err := tx.DeclareSecret(ctx, ctldb.DeclareSecretParams{
			InstallID: b.install.ID, Name: d.Name, Needed: d.Needed(), Made: d.Made(), Description: d.Description,
		})
		if err != nil {
			return fmt.Errorf("declare secret %s: %w", d.Name, err)
		}
	}
	if err := tx.UndeclareSecrets(ctx, ctldb.UndeclareSecretsParams{InstallID: b.install.ID, Names: names}); err != nil {
		return fmt.Errorf("undeclare secrets: %w", err)
	}
	return nil
}
