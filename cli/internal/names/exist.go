package names

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// begins finds something by the beginning of its id.
func (b Book) begins(ctx context.Context, kind Kind, typed string) (string, error) {
	there, err := b.there(ctx, kind, typed)
	if err != nil {
		return "", err
	}
	if there { // ids of other makers may be shorter
		return typed, nil
	}
	things, err := b.like(ctx, kind, typed)
	if err != nil {
		return "", err
	}
	return b.outcome(kind, typed, Find(typed, things))
}

// there asks for exactly this one.
func (b Book) there(ctx context.Context, kind Kind, id string) (bool, error) {
	var err error
	switch kind {
	case App:
		_, err = b.Client.GetAppWithResponse(ctx, id)
	case Build:
		_, err = b.Client.GetBuildWithResponse(ctx, id, &ctlapi.GetBuildParams{})
	case Change:
		_, err = b.Client.GetChangeWithResponse(ctx, id)
	case Config:
		_, err = b.Client.GetConfigWithResponse(ctx, id, &ctlapi.GetConfigParams{})
	case Customer:
		_, err = b.Client.GetCustomerWithResponse(ctx, id)
	case Install:
		_, err = b.Client.GetInstallWithResponse(ctx, id)
	case Release:
		_, err = b.Client.GetReleaseWithResponse(ctx, id)
	case Run:
		_, err = b.Client.GetActionRunWithResponse(ctx, id)
	case Runner:
		_, err = b.Client.GetRunnerWithResponse(ctx, id)
	case Workflow:
		_, err = b.Client.GetWorkflowWithResponse(ctx, id, &ctlapi.GetWorkflowParams{})
	}
	if IsMissing(err) {
		return false, nil
	}
	return err == nil, err
}

// IsMissing tells whether the control plane answered that there is no such thing.
func IsMissing(err error) bool {
	var problem *api.Problem
	return errors.As(err, &problem) && problem.Status == http.StatusNotFound
}

// like lists what could be meant: all of a kind, or what begins as typed.
func (b Book) like(ctx context.Context, kind Kind, typed string) ([]Thing, error) {
	switch kind {
	case Build, Change, Run, Workflow: // what begins so is first behind the last that could
		return b.behind(ctx, kind, typed+strings.Repeat("z", idLetters))
	case Config, Release:
		apps, err := b.Client.Apps(ctx, 0)
		if err != nil {
			return nil, err
		}
		var things []Thing
		for _, app := range apps {
			of, err := b.versions(ctx, kind, app.Name)
			if err != nil {
				return nil, err
			}
			things = append(things, of...)
		}
		return things, nil
	}
	return b.all(ctx, kind)
}

// all lists what there are few of.
func (b Book) all(ctx context.Context, kind Kind) ([]Thing, error) {
	var things []Thing
	var err error
	switch kind {
	case App:
		var all []ctlapi.App
		all, err = b.Client.Apps(ctx, 0)
		for _, app := range all {
			things = append(things, Thing{ID: app.ID, Names: []string{app.Name}, About: app.Name})
		}
	case Customer:
		var all []ctlapi.Customer
		all, err = b.Client.Customers(ctx, 0)
		for _, customer := range all {
			things = append(things, Thing{ID: customer.ID, Names: []string{customer.Name}, About: customer.Name})
		}
	case Install:
		var all []ctlapi.Install
		all, err = b.Client.Installs(ctx, 0, ctlapi.ListInstallsParams{})
		for _, install := range all {
			things = append(things, Thing{ID: install.ID, Names: []string{install.Name}, About: install.Name + " of " + install.Customer.Name})
		}
	case Runner:
		var all []ctlapi.Runner
		all, err = b.Client.Runners(ctx, 0, "")
		for _, runner := range all {
			things = append(things, Thing{ID: runner.ID, About: string(runner.State)})
		}
	}
	return things, err
}

// behind lists what comes behind an id in a list that goes down by id, or what is
// first in it.
func (b Book) behind(ctx context.Context, kind Kind, id string) ([]Thing, error) {
	after, most := api.Optional(id), new(mostListed)
	var things []Thing
	switch kind {
	case Build:
		resp, err := b.Client.ListBuildsWithResponse(ctx, &ctlapi.ListBuildsParams{After: after, Limit: most})
		if err != nil {
			return nil, err
		}
		for _, build := range api.Value(resp.JSON200).Items {
			things = append(things, Thing{ID: build.ID, About: fmt.Sprintf("%s, %s", build.Component.Name, build.State)})
		}
	case Change:
		resp, err := b.Client.ListChangesWithResponse(ctx, &ctlapi.ListChangesParams{After: after, Limit: most})
		if err != nil {
			return nil, err
		}
		for _, change := range api.Value(resp.JSON200).Items {
			things = append(things, ofChange(change))
		}
	case Run:
		resp, err := b.Client.ListActionRunsWithResponse(ctx, &ctlapi.ListActionRunsParams{After: after, Limit: most})
		if err != nil {
			return nil, err
		}
		for _, run := range api.Value(resp.JSON200).Items {
			things = append(things, Thing{ID: run.ID, About: fmt.Sprintf("%s of %s, %s", run.Action, run.Install.Name, run.State)})
		}
	case Workflow:
		resp, err := b.Client.ListWorkflowsWithResponse(ctx, &ctlapi.ListWorkflowsParams{After: after, Limit: most})
		if err != nil {
			return nil, err
		}
		for _, w := range api.Value(resp.JSON200).Items {
			things = append(things, ofWorkflow(w))
		}
	}
	return things, nil
}
