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

// makeRelease makes the release of a config, its own builds replaced by the
// given ones, unless there is one of just these artifacts. The app's row is
// locked by the caller. made tells a new release from one that was there.
func makeRelease(ctx context.Context, tx *database.Tx, config ctldb.ConfigHeadRow, by model.MadeBy, instead []string) (_ ctldb.Release, made bool, _ error) {
	items, err := lockItems(ctx, tx, config, instead)
	if err != nil {
		return ctldb.Release{}, false, err
	}
	row, made, err := release.Make(ctx, tx.Tx, release.Config{AppID: config.AppID, ID: config.ID, Digest: config.Digest}, by, items)
	return ctldb.Release(row), made, err
}

// lockItems finds the succeeded build of each item.
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
		return nil, fault.Newf(fault.ErrInvalid, "build %s is of a component that config %d does not have", b.ID, config.Number)
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
			return nil, fault.Newf(fault.ErrInvalid, "two builds are of component %q", rows[0].ComponentName)
		}
		chosen[b.ComponentID] = b
	}
	return chosen, nil
}

// Promote makes a release of chosen builds; number 0 is the newest config.
func Promote(ctx context.Context, tx *database.Tx, appRef string, number int, builds []string) (ctldb.Release, bool, error) {
	_, config, err := lockNewest(ctx, tx, appRef, number)
	if err != nil {
		return ctldb.Release{}, false, err
	}
	return makeRelease(ctx, tx, config, model.ByPromotion, builds)
}

// Rebuild queues new builds of components of an app's newest config, of all
// when none is named. It returns their ids.
func Rebuild(ctx context.Context, tx *database.Tx, appRef string, names []string, actor string) (ctldb.App, []string, error) {
	app, config, err := lockNewest(ctx, tx, appRef, 0)
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
			Source: row.BuildSource, Reason: "asked for", RequestedBy: actor,
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
