package build

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/db"
)

// How a release came to be.
const (
	madeBySync    = "sync"
	madeByRebuild = "rebuild"
)

// release makes the release of each config that b, which has just succeeded,
// completes. The app is locked, so of two last builds that end at once the
// second one sees the first, and numbers follow each other. A config that was
// released before gets another release only while it is the app's newest.
func (w *Worker) release(ctx context.Context, tx *store.Tx, b Build) error {
	configs, err := tx.BuilderConfigsOf(ctx, db.BuilderConfigsOfParams{AppID: b.AppID, ComponentID: b.ComponentID, BuildDigest: b.BuildDigest})
	if err != nil {
		return fmt.Errorf("find configs: %w", err)
	}
	for _, config := range configs {
		items, complete, err := lockfile(ctx, tx, config.ID)
		if err != nil {
			return fmt.Errorf("read config %s: %w", config.ID, err)
		}
		if !complete {
			continue
		}
		if err := w.makeRelease(ctx, tx, b, config, items); err != nil {
			return fmt.Errorf("release config %s: %w", config.ID, err)
		}
	}
	return nil
}

// lockfile names the exact build of each component of a config; complete says
// whether there is one of all.
func lockfile(ctx context.Context, tx *store.Tx, configID string) (items []db.AddReleaseItemParams, complete bool, err error) {
	rows, err := tx.ListConfigItems(ctx, []string{configID})
	if err != nil {
		return nil, false, err
	}
	for _, row := range rows {
		if row.BuildState != string(Succeeded) {
			return nil, false, nil
		}
		items = append(items, db.AddReleaseItemParams{
			ComponentID: row.ComponentID, RevisionID: row.RevisionID, BuildID: row.BuildID,
			ArtifactRepository: row.ArtifactRepository, ArtifactDigest: row.ArtifactDigest,
		})
	}
	return items, len(items) > 0, nil
}

// makeRelease does nothing when there is a release of just these artifacts.
func (w *Worker) makeRelease(ctx context.Context, tx *store.Tx, b Build, config db.BuilderConfigsOfRow, items []db.AddReleaseItemParams) error {
	digest := releaseDigest(config.Digest, items)
	_, err := tx.FindReleaseByDigest(ctx, db.FindReleaseByDigestParams{AppID: b.AppID, Digest: digest})
	if err == nil || !errors.Is(err, fault.ErrNotFound) {
		return err
	}
	madeBy := madeBySync
	if config.Released {
		madeBy = madeByRebuild
	}
	release, err := tx.AddRelease(ctx, db.AddReleaseParams{ID: id.New(id.Release), AppID: b.AppID, ConfigID: config.ID, MadeBy: madeBy, Digest: digest})
	if err != nil {
		return err
	}
	for _, item := range items {
		item.ReleaseID = release.ID
		if err := tx.AddReleaseItem(ctx, item); err != nil {
			return err
		}
	}
	tx.AfterCommit(func() {
		w.Log.InfoContext(ctx, "release made", "org_id", b.OrgID, "app_id", b.AppID, "release_id", release.ID, "number", release.Number, "config", config.Number)
	})
	return nil
}

// releaseDigest identifies a release by its config and its artifacts. ctl-api
// makes releases too, and computes the same: see its package apps.
func releaseDigest(configDigest string, items []db.AddReleaseItemParams) string {
	artifacts := map[string]string{}
	for _, item := range items {
		artifacts[item.ComponentID] = item.ArtifactDigest
	}
	return digestJSON([]any{"berth/release/v1", configDigest, artifacts})
}
