package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) buildsCommand() *cobra.Command {
	var app, config, state string
	list := &cobra.Command{Use: "list", Short: "List builds, newest first", Args: exactly()}
	limit := limitFlag(list)
	list.Flags().StringVar(&app, "app", "", "only of this app")
	list.Flags().StringVar(&config, "config", "", "only of this config, by id or as in hello@3")
	list.Flags().Var(usage.OneOf(&state, ctlapi.BuildStateQueued, ctlapi.BuildStateRunning, ctlapi.BuildStateSucceeded,
		ctlapi.BuildStateFailed, ctlapi.BuildStateCancelled), "state", "only in this state: queued, running, succeeded, failed, cancelled")
	list.RunE = c.call(func(ctx context.Context, client *api.Client, _ []string) error {
		items, err := collect(*limit, func(limit int, after *string) ([]ctlapi.Build, string, error) {
			resp, err := client.ListBuildsWithResponse(ctx, &ctlapi.ListBuildsParams{
				App: optional(app), Config: optional(config), State: optional(ctlapi.BuildState(state)), Limit: &limit, After: after,
			})
			if err != nil {
				return nil, "", err
			}
			page, err := api.Body(resp.JSON200)
			if err != nil {
				return nil, "", err
			}
			return page.Items, page.Next, nil
		})
		if err != nil {
			return err
		}
		return printList(c, items, c.buildView())
	})
	show := &cobra.Command{Use: "show BUILD", Short: "Show a build", Args: exactly("BUILD")}
	show.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.GetBuildWithResponse(ctx, args[0], &ctlapi.GetBuildParams{})
		if err != nil {
			return err
		}
		build, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		return printOne(c, *build, c.buildView())
	})
	create := &cobra.Command{Use: "create APP [COMPONENT]...", Short: "Build components of the newest config again", Args: cobra.MinimumNArgs(1)}
	create.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.CreateBuildsWithResponse(ctx, &ctlapi.CreateBuildsParams{}, ctlapi.BuildRequest{App: args[0], Components: args[1:]})
		if err != nil {
			return err
		}
		page, err := api.Body(resp.JSON202)
		if err != nil {
			return err
		}
		return printList(c, page.Items, c.buildView())
	})
	cancel := &cobra.Command{Use: "cancel BUILD", Short: "Cancel a build", Args: exactly("BUILD")}
	cancel.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.CancelBuildWithResponse(ctx, args[0], &ctlapi.CancelBuildParams{})
		if err != nil {
			return err
		}
		build, err := api.Body(resp.JSON202)
		if err != nil {
			return err
		}
		return printOne(c, *build, c.buildView())
	})
	return noun("builds", "build", "Artifacts being made", list, show, create, cancel)
}

func (c *cli) buildView() output.View[ctlapi.Build] {
	return output.View[ctlapi.Build]{
		Name: func(b ctlapi.Build) string { return b.ID },
		None: "no builds",
		Columns: []output.Column[ctlapi.Build]{
			{Head: "ID", Cell: func(b ctlapi.Build) string { return b.ID }},
			{Head: "APP", Cell: func(b ctlapi.Build) string { return b.App.Name }},
			{Head: "COMPONENT", Cell: func(b ctlapi.Build) string { return b.Component.Name }},
			{Head: "STATE", Cell: func(b ctlapi.Build) string { return string(b.State) }},
			{Head: "REASON", Cell: func(b ctlapi.Build) string { return b.Reason }},
			{Head: "TOOK", Cell: func(b ctlapi.Build) string {
				if b.FinishedAt == nil {
					return ""
				}
				return follow.Duration(api.BuildTime(b))
			}},
			{Head: "AGE", Cell: func(b ctlapi.Build) string { return c.age(b.CreatedAt) }},
			{Head: "WAITS FOR", Wide: true, Cell: func(b ctlapi.Build) string { return value(b.Wait).Reason }},
			{Head: "ARTIFACT", Wide: true, Cell: func(b ctlapi.Build) string { return output.ShortDigest(value(b.Artifact).Digest) }},
			{Head: "ERROR", Wide: true, Cell: func(b ctlapi.Build) string { return value(b.Error) }},
		},
	}
}
