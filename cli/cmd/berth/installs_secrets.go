package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/table"
)

func (c *cli) installsSecrets() *cobra.Command {
	cmd := &cobra.Command{
		Use: "secrets INSTALL", Short: "List the secrets of an install: versions, never values", Args: command.Exactly("INSTALL"),
		Long: `Lists the secrets that the app asks for: whether the customer has set them, which version there is
now, and which version the live components were deployed with.

The values stay with the customer, who sets them on the runner's machine: berth-runner secrets set NAME.`,
	}
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.ListInstallSecretsWithResponse(ctx, args[0])
		if err != nil {
			return err
		}
		page, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		return command.PrintList(c.CLI, page.Items, table.InstallSecret(c.Now()))
	})
	return cmd
}
