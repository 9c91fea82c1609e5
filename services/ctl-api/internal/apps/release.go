package apps

import (
	"context"
	"errors"
	"slices"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/release"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// draftOf is the release of a config, before its items.
func draftOf(config ctldb.ConfigHeadRow, by model.MadeBy) release.Draft {
	return release.Draft{Config: release.Config{AppID: config.AppID, ID: config.ID, Digest: config.Digest}, By: by}
}

// lockItems finds the succeeded build of each item, its own builds replaced by
// the given ones. The app's row is locked by the caller.
func lockItems(ctx context.Context, tx *database.Tx, config ctldb.ConfigHeadRow, instead []string) ([]release.Item, error) {
	rows, err := release.ConfigItems(ctx, tx.Tx, config.ID)
	if err != nil {
		return nil, err
	}
	chosen, err := chosenBuilds(ctx, tx, config.AppID, instead)
	if err != nil {
		return nil, err
	}
	var items []release.Item
	for _, row := range rows {
		it := release.ItemOf(row)
		state := row.BuildState
		if b, ok := chosen[row.ComponentID]; ok {
			delete(chosen, row.ComponentID)
			state, it.BuildID = b.State, b.ID
			it.ArtifactRepository, it.ArtifactDigest = optional.Value(b.ArtifactRepository), optional.Value(b.ArtifactDigest)
		}
		if state != model.BuildSucceeded {
			return nil, fault.With(fault.Newf(fault.ErrConflict, "build %s of %q is %s", it.BuildID, row.Name, state),
				fault.Code("build_not_succeeded"), fault.Remedy("wait for it, or choose another build"))
		}
		items = append(items, it)
	}
	for _, b := range chosen {
		return nil, fault.Newf(fault.ErrInvalid, "build %s is for a component that config %d does not have", b.ID, config.Number)
	}
	return items, nil
}

func chosenBuilds(ctx context.Context, tx *database.Tx, appID string, ids []string) (map[string]ctldb.Build, error) {
	chosen := map[string]ctldb.Build{}
	for _, id := range ids {
		rows, err := tx.ShowBuilds(ctx, ctldb.ShowBuildsParams{ID: id, AppID: appID, Most: 1})
		if err != nil {
			return nil, err
		}
		if id == "" || len(rows) == 0 {
			return nil, fault.Newf(fault.ErrNotFound, "the app has no build %q", id)
		}
		b := rows[0].Build
		if _, twice := chosen[b.ComponentID]; twice {
			return nil, fault.Newf(fault.ErrInvalid, "two of the builds are for component %q", rows[0].ComponentName)
		}
		chosen[b.ComponentID] = b
	}
	return chosen, nil
}

// Promotion asks for a release of chosen builds.
type Promotion struct {
	App    string   // id or name
	Config int      // its number; 0 for the newest
	Builds []string // instead of those that the config has
}

// Promote makes a release of chosen builds. made is false when the config's
// newest release has just these artifacts: that one is the answer.
func Promote(ctx context.Context, tx *database.Tx, req Promotion) (_ ctldb.Release, made bool, _ error) {
	_, config, err := lockNewest(ctx, tx, req.App, req.Config)
	if err != nil {
		return ctldb.Release{}, false, err
	}
	draft := draftOf(config, model.ByPromotion)
	if draft.Items, err = lockItems(ctx, tx, config, req.Builds); err != nil {
		return ctldb.Release{}, false, err
	}
	row, made, err := release.Make(ctx, tx.Tx, draft)
	return ctldb.Release(row), made, err
}

// RebuildRequest asks for new builds.
type RebuildRequest struct {
	App        string   // id or name
	Components []string // names; all of the app when empty
	Actor      string
}

// Rebuild queues new builds of components of an app's newest config. It returns
// their ids.
func Rebuild(ctx context.Context, tx *database.Tx, req RebuildRequest) (ctldb.App, []string, error) {
	names := req.Components
	app, config, err := lockNewest(ctx, tx, req.App, 0)
	if err != nil {
		return app, nil, err
	}
	rows, err := release.ConfigItems(ctx, tx.Tx, config.ID)
	if err != nil {
		return app, nil, err
	}
	for _, name := range names {
		if !slices.ContainsFunc(rows, func(row release.ConfigItem) bool { return row.Name == name }) {
			return app, nil, fault.Newf(fault.ErrInvalid, "app %s has no component %q", app.Name, name)
		}
	}
	var ids []string
	for _, row := range rows {
		if len(names) > 0 && !slices.Contains(names, row.Name) {
			continue
		}
		build, err := queueBuild(ctx, tx, ctldb.InsertBuildParams{
			AppID: app.ID, ComponentID: row.ComponentID, RevisionID: row.RevisionID, BuildDigest: row.BuildDigest,
			Source: row.BuildSource, Reason: "asked for", RequestedBy: req.Actor,
		})
		if err != nil {
			return app, nil, err
		}
		ids = append(ids, build)
	}
	return app, ids, nil
}

// lockNewest locks an app and finds one of its configs, the newest with number 0.
func lockNewest(ctx context.Context, tx *database.Tx, appRef string, number int) (ctldb.App, ctldb.ConfigHeadRow, error) {
	app, err := tx.FindApp(ctx, appRef)
	if errors.Is(err, fault.ErrNotFound) {
		return app, ctldb.ConfigHeadRow{}, fault.Newf(fault.ErrNotFound, "there is no app %q", appRef)
	}
	if err != nil {
		return app, ctldb.ConfigHeadRow{}, err
	}
	if app, err = tx.LockApp(ctx, app.ID); err != nil {
		return app, ctldb.ConfigHeadRow{}, err
	}
	config, err := tx.ConfigHead(ctx, ctldb.ConfigHeadParams{AppID: app.ID, Number: int32(number)})
	if errors.Is(err, fault.ErrNotFound) {
		return app, config, NoConfig(app.Name)
	}
	return app, config, err
}

// NoConfig is what is said of an app without a config.
func NoConfig(app string) error {
	return fault.With(fault.Newf(fault.ErrConflict, "app %s has no such config yet", app), fault.Code("no_config"), fault.Remedy("run `berth sync` in its folder"))
}
