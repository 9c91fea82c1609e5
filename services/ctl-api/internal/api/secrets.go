package api

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/foresight"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/ctl-api/internal/why"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// ListInstallSecrets answers what is known of the secrets that a customer keeps.
func (s *Server) ListInstallSecrets(ctx context.Context, req apigen.ListInstallSecretsRequestObject) (apigen.ListInstallSecretsResponseObject, error) {
	out := apigen.ListInstallSecrets200JSONResponse{Items: []apigen.InstallSecret{}}
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		install, err := installs.Find(ctx, tx, req.Install)
		if err != nil {
			return err
		}
		rows, in, err := secretsOf(ctx, tx, install)
		for _, row := range rows {
			if row.Declared || row.Present {
				out.Items = append(out.Items, secretView(row, in))
			}
		}
		return err
	})
	return out, err
}

func secretView(row ctldb.InstallSecret, in why.SecretsInUse) apigen.InstallSecret {
	view := apigen.InstallSecret{
		Name: row.Name, Description: optional.Of(row.Description), Declared: row.Declared, Needed: row.Needed, Made: row.Made,
		Set: row.Present, Version: int(row.Version), Digest: optional.Of(row.Digest), SetBy: optional.Of(row.SetBy), SetAt: row.SetAt, UsedBy: []apigen.SecretUse{},
	}
	for _, c := range in.Copies {
		if c.Secret == row.Name {
			view.Copies = append(view.Copies, apigen.SecretCopy{Namespace: c.Namespace, Name: c.Name, Key: c.Key, Version: c.Version, Behind: why.Behind(c, row)})
		}
	}
	for _, use := range in.Uses {
		if use.Secret == row.Name {
			view.UsedBy = append(view.UsedBy, apigen.SecretUse{Name: use.Resource, Version: int(use.Version), Behind: row.Present && use.Version != row.Version})
		}
	}
	return view
}

// secretsOf reads the secrets of an install, and which versions its live resources have.
func secretsOf(ctx context.Context, tx *database.Tx, install ctldb.Install) (rows []ctldb.InstallSecret, in why.SecretsInUse, err error) {
	rows, err = tx.SecretsOfInstall(ctx, install.ID)
	if err != nil || len(rows) == 0 || install.ReleaseID == nil {
		return rows, in, err
	}
	resources, err := tx.ResourcesOfInstall(ctx, install.ID)
	if err != nil {
		return nil, in, fmt.Errorf("read resources: %w", err)
	}
	if in.Copies, err = why.Copies(resources); err != nil {
		return nil, in, err
	}
	app, err := releaseview.App(ctx, tx.Queries, *install.ReleaseID)
	if err != nil {
		return nil, in, err
	}
	overrides, err := releaseview.Overrides(ctx, tx.Queries, install.ID, install.InputsVersion)
	if err != nil {
		return nil, in, err
	}
	live, err := tx.SecretVersionsRead(ctx, install.ID)
	if err != nil {
		return nil, in, fmt.Errorf("read versions of secrets: %w", err)
	}
	reads := map[string][]string{"sandbox": foresight.Secrets(foresight.Block{App: app, Source: foresight.Source{Kind: foresight.SourceSandbox}})}
	for _, c := range app.Components {
		reads[c.Name] = foresight.Secrets(foresight.Block{App: app, Source: foresight.Source{Kind: foresight.SourceComponent, Name: c.Name}, Override: overrides[c.Name]})
	}
	in.Uses = why.Uses(live, reads)
	return rows, in, nil
}

// whyRotated explains what still has an earlier value of a secret.
func whyRotated(ctx context.Context, tx *database.Tx, install ctldb.Install) ([]why.Reason, error) {
	rows, in, err := secretsOf(ctx, tx, install)
	return why.Rotated(install, rows, in), err
}
