package names

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/id"
)

// Kind is a kind of thing, as errors name it.
type Kind string

// The kinds that commands take.
const (
	App      Kind = "app"
	Build    Kind = "build"
	Change   Kind = "change"
	Config   Kind = "config"
	Customer Kind = "customer"
	Install  Kind = "install"
	Release  Kind = "release"
	Run      Kind = "run"
	Runner   Kind = "runner"
	Workflow Kind = "workflow"
)

// Book finds things in the control plane.
type Book struct {
	Client *api.Client
	// Exact refuses the beginning of an id: for what cannot be undone.
	Exact bool
}

const (
	// idLetters are those of a whole id behind its kind.
	idLetters = 26
	// mostListed is how many things an error lists.
	mostListed = 10
)

// isID tells ids, and beginnings of them, from names.
func isID(typed string) bool {
	name, _, _ := strings.Cut(typed, "/")
	_, _, ok := id.Cut(name)
	return ok
}

// isWhole tells whether an id lacks nothing.
func isWhole(typed string) bool {
	_, rest, ok := id.Cut(typed)
	return ok && len(rest) == idLetters
}

// Resolve returns the name or id under which the control plane knows what was
// typed. A name is that already, also when there is nothing of it: see Explain.
func (b Book) Resolve(ctx context.Context, kind Kind, typed string) (string, error) {
	switch {
	case isID(typed) && !isWhole(typed):
		return b.begins(ctx, kind, typed)
	case kind == Change:
		return b.Change(ctx, typed, false)
	case kind == Workflow:
		return b.Workflow(ctx, typed)
	}
	return typed, nil
}

// Install returns an install by its name, its id, or the beginning of that.
func (b Book) Install(ctx context.Context, typed string) (*ctlapi.Install, error) {
	typed, err := b.Resolve(ctx, Install, typed)
	if err != nil {
		return nil, err
	}
	return b.Client.Install(ctx, typed)
}

// ReleaseOrNewest returns the release of an app that was typed, and the newest one
// when none was.
func (b Book) ReleaseOrNewest(ctx context.Context, app, typed string) (*ctlapi.Release, error) {
	if typed != "" {
		return b.ReleaseOf(ctx, app, typed)
	}
	newest, err := b.Client.Releases(ctx, 1, app)
	if err == nil && len(newest) == 0 {
		err = fmt.Errorf("app %s has no release yet", app)
	}
	if err != nil {
		return nil, err
	}
	return &newest[0], nil
}

// MissingRelease says which releases there are, when a workflow did not start
// because its release is not there. All other errors stay as they are.
func (b Book) MissingRelease(ctx context.Context, install, release string, err error) error {
	if !IsMissing(err) || release == "" {
		return err
	}
	found, failed := b.Install(ctx, install)
	if failed != nil {
		return err
	}
	if _, failed = b.ReleaseOf(ctx, found.App.Name, release); failed != nil {
		return failed
	}
	return err
}

// versions are the newest releases or configs of an app.
func (b Book) versions(ctx context.Context, kind Kind, app string) ([]Thing, error) {
	var things []Thing
	if kind == Config {
		configs, err := b.Client.Configs(ctx, api.PageSize, app)
		for _, config := range configs {
			things = append(things, version(config.ID, app, config.Number))
		}
		return things, err
	}
	releases, err := b.Client.Releases(ctx, api.PageSize, app)
	for _, release := range releases {
		things = append(things, version(release.ID, app, release.Number))
	}
	return things, err
}

func version(id, app string, number int) Thing {
	name := app + "@" + strconv.Itoa(number)
	return Thing{ID: id, Names: []string{name}, About: name}
}

func isNumber(text string) bool {
	_, err := strconv.ParseUint(text, 10, 31)
	return err == nil
}

// ReleaseOf returns a release of an app, to be found by its number, as hello@4,
// or by its id or the beginning of that.
func (b Book) ReleaseOf(ctx context.Context, app, typed string) (*ctlapi.Release, error) {
	ref := typed
	switch {
	case isNumber(typed):
		ref = app + "@" + typed
	case isID(typed) && !isWhole(typed):
		things, err := b.versions(ctx, Release, app)
		if err != nil {
			return nil, err
		}
		if ref, err = b.outcome(Release, typed, Find(typed, things)); err != nil {
			return nil, err
		}
	}
	resp, err := b.Client.GetReleaseWithResponse(ctx, ref)
	if err != nil {
		return nil, err
	}
	return api.Body(resp.JSON200)
}
