package releaseview

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/offer"
	"github.com/berth-dev/berth/services/ctl-api/internal/orders"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Brings reads what a release brings, as a runner accepts it: its scripts and
// the digests of its artifacts.
func Brings(ctx context.Context, q *ctldb.Queries, releaseID string) (jobspec.Release, error) {
	app, row, err := read(ctx, q, releaseID)
	if err != nil {
		return jobspec.Release{}, err
	}
	items, err := q.ReleaseItemsOf(ctx, releaseID)
	if err != nil {
		return jobspec.Release{}, fmt.Errorf("read release items: %w", err)
	}
	release := jobspec.Release{ID: releaseID, Number: int(row.Number), Artifacts: []jobspec.ReleaseArtifact{}, Secrets: orders.Secrets(app), Roles: orders.Roles(app)}
	for _, item := range items {
		release.Artifacts = append(release.Artifacts, jobspec.ReleaseArtifact{Name: item.Name, Digest: item.ArtifactDigest})
	}
	if release.Scripts, err = orders.Scripts(app); err != nil {
		return release, err
	}
	if release.Configs, err = configs(app, items); err != nil {
		return release, err
	}
	for _, item := range items {
		if item.Kind != model.KindComponent {
			continue
		}
		plugin, found, err := orders.PluginScript(item.Spec, jobspec.Artifact{Repository: item.ArtifactRepository, Digest: item.ArtifactDigest})
		if err != nil {
			return release, err
		}
		if found {
			release.Scripts = append(release.Scripts, plugin)
		}
	}
	return release, nil
}

// Offered is what a release brings, with what the vendor signed of it and against it.
func Offered(ctx context.Context, q *ctldb.Queries, releaseID string) (jobspec.Release, error) {
	release, err := Brings(ctx, q, releaseID)
	if err != nil {
		return release, err
	}
	rows, err := q.StatementsOfRelease(ctx, releaseID)
	if err != nil {
		return release, fmt.Errorf("read statements of release %s: %w", releaseID, err)
	}
	for _, row := range rows {
		env, err := envelopeOf(row.Envelope)
		if err != nil {
			return release, fmt.Errorf("statement of release %s: %w", releaseID, err)
		}
		release.Signed = append(release.Signed, env)
	}
	revocations, err := q.RevocationsOfRelease(ctx, releaseID)
	if err != nil {
		return release, fmt.Errorf("read revocations of release %s: %w", releaseID, err)
	}
	for _, row := range revocations {
		env, err := envelopeOf(row.Envelope)
		if err != nil {
			return release, fmt.Errorf("revocation of release %s: %w", releaseID, err)
		}
		release.Revoked = append(release.Revoked, env)
	}
	return release, nil
}

// Revoked are the newest revocations of an app's releases, as the vendor signed them.
func Revoked(ctx context.Context, q *ctldb.Queries, appID string) (list []capsule.Envelope, err error) {
	rows, err := q.RevocationsOfApp(ctx, ctldb.RevocationsOfAppParams{AppID: appID, Most: offer.MaxRevocations})
	if err != nil {
		return nil, fmt.Errorf("read revocations: %w", err)
	}
	for _, row := range rows {
		env, err := envelopeOf(row)
		if err != nil {
			return nil, fmt.Errorf("revocation of a release of app %s: %w", appID, err)
		}
		list = append(list, env)
	}
	return list, nil
}

func envelopeOf(raw []byte) (env capsule.Envelope, err error) {
	err = json.Unmarshal(raw, &env)
	return env, err
}

// configs are what the app says of each component, of the sandbox and of copies of
// secrets, as jobs about them say it. One that this version cannot deploy has none.
func configs(app *appconfig.App, items []ctldb.ReleaseItemsOfRow) ([]jobspec.ReleaseConfig, error) {
	specs := []jobspec.Spec{{SecretSync: &jobspec.SecretSync{Copies: append([]jobspec.SecretCopy{}, orders.SecretCopies(app)...)}}}
	for _, item := range items {
		if item.Kind != model.KindComponent && item.Kind != model.KindSandbox {
			continue
		}
		spec := jobspec.Spec{Resource: &jobspec.Resource{Name: item.Name}, Artifact: &jobspec.Artifact{Digest: item.ArtifactDigest}}
		revision := orders.Revision{Sandbox: item.Kind == model.KindSandbox, Spec: item.Spec, Commit: item.SourceCommit, App: app}
		if _, err := revision.Fill(&spec); err == nil {
			specs = append(specs, spec)
		}
	}
	var list []jobspec.ReleaseConfig
	for _, spec := range specs {
		config, _, err := spec.Config()
		if err != nil {
			return nil, err
		}
		list = append(list, jobspec.ReleaseConfig{Name: config.Name, Digest: config.Digest})
	}
	return list, nil
}
