package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) installsSecrets() *cobra.Command {
	cmd := &cobra.Command{
		Use: "secrets INSTALL", Short: "List the secrets of an install: versions, never values", Args: command.Exactly("INSTALL"),
		Long: `Lists the secrets that the app asks for: whether the customer has set them, which version there is
now, which version the live components were deployed with, and where copies of it are in the
install's cluster (-o wide).

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

func (c *cli) installsSyncSecrets() *cobra.Command {
	var how watching
	cmd := &cobra.Command{
		Use: "sync-secrets INSTALL", Short: "Copy the customer's secrets into the install's cluster again", Args: command.Exactly("INSTALL"),
		Long: `Brings the copies of secrets in the install's cluster to what its release declares and to the
values that the customer has set by now: after a rotation, for example. The plan shows names,
versions and salted digests; the values stay with the customer. Copies that are no longer
declared are removed. Pods that read a copy as an environment variable have to be restarted.`,
	}
	how.planFlag(cmd, "copied")
	how.flags(cmd)
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		return c.start(ctx, client, launch{args[0], ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindSyncSecrets}, how})
	})
	return cmd
}
