package apps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/services/ctl-api/internal/configdiff"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/release"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// VersionOfConfig reads a config for a comparison.
func VersionOfConfig(ctx context.Context, tx *database.Tx, config ctldb.Config) (configdiff.Version, error) {
	v, err := versionOf(config)
	if err != nil {
		return v, err
	}
	rows, err := release.ConfigItems(ctx, tx.Tx, config.ID)
	if err != nil {
		return v, err
	}
	for _, row := range rows {
		source, err := sourceFrom(row.BuildSource)
		if err != nil {
			return v, err
		}
		v.Items[configdiff.Key(string(row.Kind), row.Name)] = configdiff.Item{
			BuildDigest: row.BuildDigest, DeployDigest: row.DeployDigest, Content: source.Digest,
		}
	}
	return v, nil
}

// VersionOfRelease reads a release for a comparison.
func VersionOfRelease(ctx context.Context, tx *database.Tx, r ctldb.Release) (configdiff.Version, error) {
	config, err := tx.FindConfig(ctx, ctldb.FindConfigParams{ID: r.ConfigID})
	if err != nil {
		return configdiff.Version{}, err
	}
	v, err := versionOf(config.Config)
	if err != nil {
		return v, err
	}
	rows, err := tx.ReleaseItemDigests(ctx, r.ID)
	if err != nil {
		return v, err
	}
	for _, row := range rows {
		source, err := sourceFrom(row.Source)
		if err != nil {
			return v, err
		}
		v.Items[configdiff.Key(string(row.Kind), row.Name)] = configdiff.Item{
			BuildDigest: row.BuildDigest, DeployDigest: row.DeployDigest,
			Content: source.Digest, Artifact: row.ArtifactDigest,
		}
	}
	return v, nil
}

func versionOf(config ctldb.Config) (configdiff.Version, error) {
	v := configdiff.Version{App: &appconfig.App{}, Items: map[string]configdiff.Item{}}
	if err := json.Unmarshal(config.Body, v.App); err != nil {
		return v, fmt.Errorf("decode config %s: %w", config.ID, err)
	}
	return v, nil
}

// planChanges compares the folder with the newest config.
func (s *syncing) planChanges(ctx context.Context) error {
	var before configdiff.Version
	newest, err := s.tx.NewestConfig(ctx, s.out.App.ID)
	switch {
	case errors.Is(err, fault.ErrNotFound):
	case err != nil:
		return err
	default:
		if before, err = VersionOfConfig(ctx, s.tx, newest); err != nil {
			return err
		}
		s.out.Against = &newest
	}
	after, err := versionOf(ctldb.Config{Body: s.body()}) // as it would be read again
	if err != nil {
		return err
	}
	for _, it := range s.items {
		after.Items[configdiff.Key(string(it.Kind), it.Name)] = configdiff.Item{
			BuildDigest: it.BuildDigest, DeployDigest: it.DeployDigest, Content: it.Source.Digest,
		}
	}
	s.out.Changes = configdiff.Compare(before, after)
	return nil
}
