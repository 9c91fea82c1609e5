package names

import (
	"context"
	"strings"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// The lists below are what can be typed, for completion. Each asks once or twice.

// All are all installs, apps, customers or runners.
func (b Book) All(ctx context.Context, kind Kind) ([]Thing, error) {
	things, err := b.all(ctx, kind)
	for i := range things {
		if len(things[i].Names) > 0 && things[i].About == things[i].Names[0] {
			things[i].About = ""
		}
	}
	return things, err
}

// Newest are a few of the newest builds or workflows.
func (b Book) Newest(ctx context.Context, kind Kind) ([]Thing, error) {
	things, err := b.behind(ctx, kind, "")
	for i := range things {
		things[i].Names = nil
	}
	return things, err
}

// Waiting are the changes that wait for a decision, each by its own name where it
// has one.
func (b Book) Waiting(ctx context.Context) ([]Thing, error) {
	proposed, err := b.Client.Changes(ctx, api.PageSize, ctlapi.ListChangesParams{State: new(ctlapi.ChangeStateProposed)})
	if err != nil {
		return nil, err
	}
	things := proposals(proposed)
	for i := range things {
		things[i].Names = things[i].Names[1:] // the install comes as such
	}
	return things, nil
}

// Versions are the releases or configs of what is named: an app, an install (its
// app's), or a version of it (hello@3). Of an app's or an install's the number is
// enough.
func (b Book) Versions(ctx context.Context, kind Kind, of string) ([]Thing, error) {
	if app, _, ok := strings.Cut(of, "@"); ok {
		return b.versions(ctx, kind, app)
	}
	if of == "" {
		return b.like(ctx, kind, "")
	}
	name, _, _ := strings.Cut(of, "/")
	app := name
	if install, err := b.Install(ctx, name); err == nil {
		app = install.App.Name
	}
	things, err := b.versions(ctx, kind, app)
	for i := range things {
		_, number, _ := strings.Cut(things[i].Names[0], "@")
		things[i].Names = []string{number}
	}
	return things, err
}

// Parts are the sandbox and the components of an install, with something in front
// of their names.
func (b Book) Parts(ctx context.Context, install, prefix string) ([]Thing, error) {
	resp, err := b.Client.ListResourcesWithResponse(ctx, install)
	if err != nil {
		return nil, err
	}
	var things []Thing
	for _, r := range api.Value(resp.JSON200).Items {
		if r.Kind != "stack" {
			things = append(things, Thing{ID: r.ID, Names: []string{prefix + r.Name}, About: r.Type + ", " + string(r.State)})
		}
	}
	return things, nil
}

// Actions are the actions of an install.
func (b Book) Actions(ctx context.Context, install string) ([]Thing, error) {
	resp, err := b.Client.ListActionsWithResponse(ctx, install)
	if err != nil {
		return nil, err
	}
	var things []Thing
	for _, a := range api.Value(resp.JSON200).Items {
		things = append(things, Thing{ID: a.Name, Names: []string{a.Name}, About: a.Description})
	}
	return things, nil
}
