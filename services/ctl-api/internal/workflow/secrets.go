package workflow

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/orders"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// syncTime bounds a sync of secrets, and its plan: a request or two for each copy.
const syncTime = 10 * time.Minute

// gatherSecrets writes down what the release says of the customer's secrets, and says
// whether the workflow waits for some, and whether it copies some to the cluster. Those of a
// rehearsal are made up.
func gatherSecrets(ctx context.Context, tx *database.Tx, b basis, app *appconfig.App, in *flow.PlanInput) error {
	if b.install.Rehearsal != nil || !brings[b.Kind] && b.Kind != flow.KindSyncSecrets {
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
	if in.Copies = len(orders.SecretCopies(app)) > 0; !in.Copies {
		return nil
	}
	err := tx.EnsureResource(ctx, ctldb.EnsureResourceParams{
		ID: id.New(id.Resource), InstallID: b.install.ID, Kind: model.KindSecrets, Name: string(model.KindSecrets), Type: string(jobspec.KindSecretSync),
	})
	if err != nil {
		return fmt.Errorf("ensure resource for copies of secrets: %w", err)
	}
	return nil
}

// secretsSpec is a job that plans the copies of secrets which a release wants in the
// install's cluster, or that none are left.
func secretsSpec(ctx context.Context, q *ctldb.Queries, s subject, insert *ctldb.InsertChangeParams) (jobspec.Spec, error) {
	spec := newSpec(s, jobspec.KindSecretSync, jobspec.OperationPlan, syncTime)
	spec.Resource = &jobspec.Resource{ID: s.resource.ID, Kind: string(s.resource.Kind), Name: s.resource.Name}
	spec.SecretSync = &jobspec.SecretSync{Copies: []jobspec.SecretCopy{}}
	insert.Kind = model.ChangeSecretSync
	if flow.StepKind(s.step.Kind) == flow.StepTeardown {
		insert.Kind, spec.Destroy = model.ChangeTeardown, true
		return spec, nil
	}
	app, err := releaseview.App(ctx, q, optional.Value(s.workflow.ReleaseID))
	if err != nil {
		return spec, err
	}
	spec.SecretSync.Copies = append(spec.SecretSync.Copies, orders.SecretCopies(app)...)
	spec.File = orders.SecretsFile
	return spec, nil
}
