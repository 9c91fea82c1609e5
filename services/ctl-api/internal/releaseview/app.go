package releaseview

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/graph"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// App reads the app as a release pins it.
func App(ctx context.Context, q *ctldb.Queries, releaseID string) (*appconfig.App, error) {
	app, _, err := read(ctx, q, releaseID)
	return app, err
}

// Named is App with the name that the app has now.
func Named(ctx context.Context, q *ctldb.Queries, releaseID string) (app *appconfig.App, name string, err error) {
	app, row, err := read(ctx, q, releaseID)
	return app, row.AppName, err
}

func read(ctx context.Context, q *ctldb.Queries, releaseID string) (*appconfig.App, ctldb.ConfigBodyOfReleaseRow, error) {
	row, err := q.ConfigBodyOfRelease(ctx, releaseID)
	if err != nil {
		return nil, row, fmt.Errorf("read config of release %s: %w", releaseID, err)
	}
	var app appconfig.App
	if err := json.Unmarshal(row.Body, &app); err != nil {
		return nil, row, fmt.Errorf("read config of release %s: %w", releaseID, err)
	}
	app.AddProbes()
	return &app, row, pinScripts(ctx, q, releaseID, &app)
}

// pinScripts gives each step of an action that runs in a repository what the
// release has built of it, nothing for a release that was made before steps had,
// and each action in the image of a component the image's digest.
func pinScripts(ctx context.Context, q *ctldb.Queries, releaseID string, app *appconfig.App) error {
	inImage := slices.ContainsFunc(app.Actions, func(a appconfig.Action) bool { return a.Image != "" })
	if len(appconfig.ScriptSources(app)) == 0 && !inImage {
		return nil
	}
	items, err := q.ReleaseItemsOf(ctx, releaseID)
	if err != nil {
		return fmt.Errorf("read release items: %w", err)
	}
	built, images := map[string]*appconfig.Artifact{}, map[string]string{}
	for _, item := range items {
		if item.Kind == model.KindComponent {
			images[item.Name] = item.ArtifactDigest
		}
		if item.Kind == model.KindScripts {
			built[item.Name] = &appconfig.Artifact{Repository: item.ArtifactRepository, Digest: item.ArtifactDigest}
		}
	}
	app.PinImages(images)
	for i := range app.Actions {
		steps := app.Actions[i].Steps
		for j := range steps {
			if src, ok := steps[j].Source(); ok {
				steps[j].Artifact = built[src.Name]
			}
		}
	}
	return nil
}

// InForce reads the app as a release pins it, without the actions that need a
// component that can be off and is not there: they could only fail.
func InForce(ctx context.Context, q *ctldb.Queries, installID, releaseID string) (*appconfig.App, error) {
	app, err := App(ctx, q, releaseID)
	if err != nil {
		return nil, err
	}
	resources, err := q.ResourcesOfInstall(ctx, installID)
	if err != nil {
		return nil, fmt.Errorf("read resources: %w", err)
	}
	there := map[string]bool{}
	for _, r := range resources {
		there[r.Name] = there[r.Name] || r.Kind == model.KindComponent && r.LiveReleaseID != nil
	}
	out := func(name string) bool {
		c := app.Component(name)
		return c != nil && c.Toggleable && !there[name]
	}
	kept := make([]appconfig.Action, 0, len(app.Actions))
	for i := range app.Actions {
		if !app.ActionNeedsAny(&app.Actions[i], out) {
			kept = append(kept, app.Actions[i])
		}
	}
	app.Actions = kept
	return app, nil
}

// Needs reads what each component of a release needs, by name.
func Needs(ctx context.Context, q *ctldb.Queries, releaseID string) (map[string][]string, error) {
	app, err := App(ctx, q, releaseID)
	if err != nil {
		return nil, err
	}
	g, _ := graph.New(app)
	needs := map[string][]string{}
	for _, c := range app.Components {
		needs[c.Name] = g.Needs(c.Name)
	}
	return needs, nil
}
