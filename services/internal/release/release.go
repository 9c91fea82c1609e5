// Package release makes releases: the lockfile of a config, which names the
// exact build of each of its components. ctl-api makes one when a sync finds
// all builds there or somebody promotes; builder makes one when the last build
// of a config is done. Which builds stand in it is for them to say.
package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/shareddb"
)

// Config is what a release is of.
type Config struct {
	AppID  string
	ID     string
	Digest string
}

// Item is a component in a release, with the build that stands for it.
type Item struct {
	ComponentID, RevisionID, BuildID   string
	ArtifactRepository, ArtifactDigest string
}

// ConfigItem is an item of a config with the build that counts.
type ConfigItem = shareddb.ListConfigItemsRow

// ConfigItems are the items of these configs, in the order of configs, then kinds
// and names.
func ConfigItems(ctx context.Context, tx *store.Tx, configIDs ...string) ([]ConfigItem, error) {
	return shareddb.New(tx.DB()).ListConfigItems(ctx, configIDs)
}

// ItemOf is what a release says of the item of a config.
func ItemOf(row ConfigItem) Item {
	return Item{
		ComponentID: row.ComponentID, RevisionID: row.RevisionID, BuildID: row.BuildID,
		ArtifactRepository: row.ArtifactRepository, ArtifactDigest: row.ArtifactDigest,
	}
}

// Make stores the release of a config with these items, all of whose builds
// have succeeded, unless there is one of just these artifacts. made tells a new
// release from one that was there. The caller has locked the app's row, so that
// numbers follow each other.
func Make(ctx context.Context, tx *store.Tx, config Config, by model.MadeBy, items []Item) (_ shareddb.Release, made bool, _ error) {
	digest, q := Digest(config.Digest, items), shareddb.New(tx.DB())
	release, err := q.FindReleaseByDigest(ctx, shareddb.FindReleaseByDigestParams{AppID: config.AppID, Digest: digest})
	if err == nil || !errors.Is(err, fault.ErrNotFound) {
		return release, false, err
	}
	release, err = q.AddRelease(ctx, shareddb.AddReleaseParams{
		ID: id.New(id.Release), AppID: config.AppID, ConfigID: config.ID, MadeBy: string(by), Digest: digest,
	})
	if err != nil {
		return release, false, fmt.Errorf("store release: %w", err)
	}
	rows := shareddb.AddReleaseItemsParams{ReleaseID: release.ID}
	for _, item := range items {
		rows.ComponentIds = append(rows.ComponentIds, item.ComponentID)
		rows.RevisionIds = append(rows.RevisionIds, item.RevisionID)
		rows.BuildIds = append(rows.BuildIds, item.BuildID)
		rows.ArtifactRepositories = append(rows.ArtifactRepositories, item.ArtifactRepository)
		rows.ArtifactDigests = append(rows.ArtifactDigests, item.ArtifactDigest)
	}
	if err := q.AddReleaseItems(ctx, rows); err != nil {
		return release, false, fmt.Errorf("store release items: %w", err)
	}
	tx.NotifyAfterCommit(model.ChannelBuild, config.AppID)
	return release, true, nil
}

// Digest identifies a release: a config and its artifacts. The order of the
// items does not matter.
func Digest(configDigest string, items []Item) string {
	artifacts := map[string]string{} // written in the order of its keys
	for _, item := range items {
		artifacts[item.ComponentID] = item.ArtifactDigest
	}
	raw, err := json.Marshal([]any{"berth/release/v1", configDigest, artifacts})
	if err != nil {
		panic(err) // strings only
	}
	return capsule.DigestBytes(raw)
}
