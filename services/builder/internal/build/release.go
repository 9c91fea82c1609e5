package build

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/services/builder/internal/database"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/release"
	"github.com/berth-dev/berth/services/internal/store/builderdb"
)

// releaseWhatIsDone makes the release of each config that b, which has just succeeded,
// completes. The app is locked, so of two last builds that end at once the
// second one sees the first, and numbers follow each other. A config that was
// released before gets another release only while it is the app's newest.
func (w *Worker) releaseWhatIsDone(ctx context.Context, tx *database.Tx, b Build) error {
	configs, err := tx.BuilderConfigsOf(ctx, builderdb.BuilderConfigsOfParams{AppID: b.AppID, ComponentID: b.ComponentID, BuildDigest: b.BuildDigest})
	if err != nil {
		return fmt.Errorf("find configs: %w", err)
	}
	for _, config := range configs {
		if err := w.makeRelease(ctx, tx, b, config); err != nil {
			return err
		}
	}
	return nil
}

// lockfile names the exact build of each component of a config; complete says
// whether there is one of all.
func lockfile(ctx context.Context, tx *database.Tx, configID string) (items []release.Item, complete bool, err error) {
	rows, err := release.ConfigItems(ctx, tx.Tx, configID)
	if err != nil {
		return nil, false, err
	}
	for _, row := range rows {
		if row.BuildState != model.BuildSucceeded {
			return nil, false, nil
		}
		items = append(items, release.ItemOf(row))
	}
	return items, len(items) > 0, nil
}

// makeRelease does nothing while a build is missing, or when the config's newest
// release has just these artifacts.
func (w *Worker) makeRelease(ctx context.Context, tx *database.Tx, b Build, config builderdb.BuilderConfigsOfRow) error {
	items, complete, err := lockfile(ctx, tx, config.ID)
	if err != nil {
		return fmt.Errorf("read config %s: %w", config.ID, err)
	}
	if !complete {
		return nil
	}
	draft := release.Draft{Config: release.Config{AppID: b.AppID, ID: config.ID, Digest: config.Digest}, By: model.BySync, Items: items}
	if config.Released {
		draft.By = model.ByRebuild
	}
	row, made, err := release.Make(ctx, tx.Tx, draft)
	if err != nil {
		return fmt.Errorf("release config %s: %w", config.ID, err)
	}
	if !made {
		return nil
	}
	tx.AfterCommit(func() {
		w.Log.InfoContext(ctx, "release made", "org_id", b.OrgID, "app_id", b.AppID, "release_id", row.ID, "number", row.Number, "config", config.Number)
	})
	return nil
}
