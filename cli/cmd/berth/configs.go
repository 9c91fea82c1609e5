package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) configsCommand() *cobra.Command {
	list := &cobra.Command{Use: "list APP", Short: "List the configs of an app", Args: exactly("APP")}
	limit := limitFlag(list)
	list.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		items, err := client.Configs(ctx, *limit, args[0])
		if err != nil {
			return err
		}
		return printList(c, items, table.Config(c.now()))
	})
	show := &cobra.Command{Use: "show CONFIG", Short: "Show a config by id, or by app and number as in hello@3", Args: exactly("CONFIG")}
	show.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.GetConfigWithResponse(ctx, args[0], &ctlapi.GetConfigParams{})
		if err != nil {
			return err
		}
		config, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		if err := printOne(c, *config, table.Config(c.now())); err != nil || c.forPrograms() {
			return err
		}
		return printList(c, config.Items, table.ConfigItem())
	})
	diff := c.diffCommand("config", "Show what differs between two configs of an app", "  berth configs diff hello@3 5\n  berth configs diff 3 5 -o json",
		func(ctx context.Context, client *api.Client, from, to string) (*ctlapi.Diff, error) {
			resp, err := client.DiffConfigsWithResponse(ctx, from, &ctlapi.DiffConfigsParams{To: to})
			if err != nil {
				return nil, err
			}
			return api.Body(resp.JSON200)
		})
	return noun("configs", "config", "The numbered versions of an app folder", list, show, diff)
}
