package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/diffview"
	"github.com/berth-dev/berth/cli/internal/fleet"
	"github.com/berth-dev/berth/cli/internal/names"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) configsCommand() *cobra.Command {
	list := &cobra.Command{Use: "list APP", Short: "List the configs of an app", Args: command.Exactly("APP")}
	limit := command.LimitFlag(list)
	list.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		items, err := client.Configs(ctx, *limit, args[0])
		if err != nil {
			return err
		}
		return command.PrintList(c.CLI, items, table.Config(c.Now()))
	})
	show := &cobra.Command{Use: "show CONFIG", Short: "Show a config by id, or by app and number as in hello@3", Args: command.Exactly("CONFIG")}
	show.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.GetConfigWithResponse(ctx, args[0], &ctlapi.GetConfigParams{})
		if err != nil {
			return err
		}
		config, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		if err := command.PrintOne(c.CLI, *config, table.Config(c.Now())); err != nil || c.ForPrograms() {
			return err
		}
		return command.PrintList(c.CLI, config.Items, table.ConfigItem())
	})
	diff := c.diffCommand("config", "Show what differs between two configs of an app",
		func(ctx context.Context, client *api.Client, from, to string) (*ctlapi.Diff, error) {
			resp, err := client.DiffConfigsWithResponse(ctx, from, &ctlapi.DiffConfigsParams{To: to})
			if err != nil {
				return nil, err
			}
			return api.Body(resp.JSON200)
		})
	return command.Noun("configs", "config", "The numbered versions of an app folder", list, show, diff, fleet.ConfigGraph(c.CLI))
}

// comparing is a question for the differences between two of something.
type comparing func(ctx context.Context, client *api.Client, from, to string) (*ctlapi.Diff, error)

// diffCommand compares two configs or two releases.
func (c *cli) diffCommand(what, short string, ask comparing) *cobra.Command {
	var app string
	upper := strings.ToUpper(what)
	cmd := &cobra.Command{
		Use:   "diff " + upper + " " + upper,
		Short: short,
		Long: "Name each by its id, by app and number as in hello@3, or by its number alone: it then\n" +
			"belongs to the app of the other one, of --app, or of the folder you are in. The exit\n" +
			"code is 2 if they differ.",
		Args: command.Exactly(upper, upper),
	}
	cmd.Flags().StringVar(&app, "app", "", "the app that plain numbers belong to (default: the folder's name)")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		from, to, err := names.Both(app, args[0], args[1])
		if err != nil {
			return err
		}
		diff, err := ask(ctx, client, from, to)
		if err != nil {
			return err
		}
		return c.showDiff(what, diff)
	})
	return cmd
}

func (c *cli) showDiff(what string, diff *ctlapi.Diff) error {
	if c.ForPrograms() {
		view := output.View[ctlapi.Diff]{Name: func(d ctlapi.Diff) string { return d.To.ID }}
		if err := command.PrintOne(c.CLI, *diff, view); err != nil {
			return err
		}
	} else if _, err := fmt.Fprint(c.Out, diffview.Text(what, diff, c.ColorOn(c.Out))); err != nil {
		return err
	}
	if len(diff.Changes) > 0 {
		return command.Outcome(command.ExitChanges)
	}
	return nil
}
