package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "status [INSTALL]", Short: "Show your installs: health, release, and what they are doing or waiting for",
		Args: exactly("[INSTALL]"),
	}
	cmd.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		var installs []ctlapi.Install
		if len(args) > 0 {
			install, err := client.Install(ctx, args[0])
			if err != nil {
				return err
			}
			installs = append(installs, *install)
		} else {
			var err error
			if installs, err = client.Installs(ctx, 0, ctlapi.ListInstallsParams{}); err != nil {
				return err
			}
		}
		statuses := make([]table.InstallStatus, len(installs))
		for i, install := range installs {
			statuses[i].Install = install
			if install.WorkflowID == nil {
				continue
			}
			resp, err := client.GetWorkflowWithResponse(ctx, *install.WorkflowID, &ctlapi.GetWorkflowParams{})
			if err != nil {
				return err
			}
			statuses[i].Workflow = resp.JSON200
		}
		return printList(c, statuses, table.Status())
	})
	return cmd
}
