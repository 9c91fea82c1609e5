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

// Draft is a release to be made.
type Draft struct {
	Config Config
	By     model.MadeBy
	Items  []Item
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

// Make stores a release, whose builds have all succeeded, unless the config's
// newest release has just these artifacts. made tells a new release from that
// one. An older release with the same artifacts does not count: what is released
// last is the newest, whatever it is like. The caller has locked the app's row,
// so that numbers follow each other.
func Make(ctx context.Context, tx *store.Tx, draft Draft) (_ shareddb.Release, made bool, _ error) {
	config, items := draft.Config, draft.Items
	digest, q := Digest(config.Digest, items), shareddb.New(tx.DB())
	release, err := q.NewestReleaseOfConfig(ctx, config.ID)
	if err != nil && !errors.Is(err, fault.ErrNotFound) {
		return release, false, err
	}
	if err == nil && release.Digest == digest {
		return release, false, nil
	}
	release, err = q.AddRelease(ctx, shareddb.AddReleaseParams{
		ID: id.New(id.Release), AppID: config.AppID, ConfigID: config.ID, MadeBy: string(draft.By), Digest: digest,
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

// Digest says what is in a release: a config and its artifacts. Releases with the
// same digest bring the same. The order of the items does not matter.
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
