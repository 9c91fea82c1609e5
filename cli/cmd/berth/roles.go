package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/table"
)

func (c *cli) rolesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "roles INSTALL", Short: "List the roles that an install's customer switches on and off", Args: command.Exactly("INSTALL"),
		Long: `Lists the break-glass and custom roles of the release that the install's runner accepted: which are on,
since when, until when, who switched them, and which actions need them.

All are off until the customer switches one on, on the runner's machine: berth-runner roles enable NAME.
Nobody can do that from here.`,
		Example: "  berth roles acme -o wide",
	}
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.ListInstallRolesWithResponse(ctx, args[0])
		if err != nil {
			return err
		}
		page, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		return command.PrintList(c.CLI, page.Items, table.InstallRole(c.Now()))
	})
	return cmd
}
