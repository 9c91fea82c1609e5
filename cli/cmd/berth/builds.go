package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/attested"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) buildsCommand() *cobra.Command {
	var app, config, state string
	list := &cobra.Command{Use: "list", Short: "List builds, newest first", Args: command.Exactly()}
	limit := command.LimitFlag(list)
	list.Flags().StringVar(&app, "app", "", "only for this app")
	list.Flags().StringVar(&config, "config", "", "only for this config, by id or as in hello@3")
	list.Flags().Var(usage.OneOf(&state, ctlapi.BuildStateQueued, ctlapi.BuildStateRunning, ctlapi.BuildStateSucceeded,
		ctlapi.BuildStateFailed, ctlapi.BuildStateCancelled), "state", "only in this state: queued, running, succeeded, failed, cancelled")
	list.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		items, err := client.Builds(ctx, *limit, ctlapi.ListBuildsParams{
			App: api.Optional(app), Config: api.Optional(config), State: api.Optional(ctlapi.BuildState(state)),
		})
		if err != nil {
			return err
		}
		return command.PrintList(c.CLI, items, table.Build(c.Now()))
	})
	show := &cobra.Command{Use: "show BUILD", Short: "Show a build", Args: command.Exactly("BUILD")}
	show.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.GetBuildWithResponse(ctx, args[0], &ctlapi.GetBuildParams{})
		if err != nil {
			return err
		}
		build, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		return command.PrintOne(c.CLI, *build, table.Build(c.Now()))
	})
	create := &cobra.Command{Use: "create APP [COMPONENT]...", Short: "Build components of the newest config again", Args: cobra.MinimumNArgs(1)}
	create.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.CreateBuildsWithResponse(ctx, &ctlapi.CreateBuildsParams{}, ctlapi.BuildRequest{App: args[0], Components: args[1:]})
		if err != nil {
			return err
		}
		page, err := api.Body(resp.JSON202)
		if err != nil {
			return err
		}
		return command.PrintList(c.CLI, page.Items, table.Build(c.Now()))
	})
	cancel := &cobra.Command{Use: "cancel BUILD", Short: "Cancel a build", Args: command.Exactly("BUILD")}
	cancel.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.CancelBuildWithResponse(ctx, args[0], &ctlapi.CancelBuildParams{})
		if err != nil {
			return err
		}
		build, err := api.Body(resp.JSON202)
		if err != nil {
			return err
		}
		return command.PrintOne(c.CLI, *build, table.Build(c.Now()))
	})
	attestations := attested.Commands(attested.Doors{Call: c.Call, Args: command.Exactly("BUILD"), Out: c.Out, Err: c.Err})
	return command.Noun("builds", "build", "Builds of components", append([]*cobra.Command{list, show, create, cancel}, attestations...)...)
}
