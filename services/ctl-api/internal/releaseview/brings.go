package releaseview

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/pkg/jobspec"
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
