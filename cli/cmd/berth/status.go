package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "status [INSTALL]", Short: "Show your installs: health, releases, what is pending, and how the last workflow ended",
		Long: `Shows how each install stands: its health, or what it is instead of live; its release
and the newest one; what was set and is not deployed; and what is at work, or how the
last workflow ended. Below the table stands what failed and why, and the customer's
switch with its reason. With an install, its components follow.`,
		Args: command.Exactly("[INSTALL]"),
	}
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		var answered []ctlapi.InstallStatus
		if len(args) > 0 {
			resp, err := client.GetInstallStatusWithResponse(ctx, args[0])
			if err != nil {
				return err
			}
			one, err := api.Body(resp.JSON200)
			if err != nil {
				return err
			}
			answered = append(answered, *one)
		} else {
			var err error
			if answered, err = client.Statuses(ctx, 0); err != nil {
				return err
			}
		}
		statuses := make([]table.InstallStatus, 0, len(answered))
		for _, s := range answered {
			statuses = append(statuses, table.StatusOf(s))
		}
		if err := command.PrintList(c.CLI, statuses, table.Status(c.Now())); err != nil || c.ForPrograms() {
			return err
		}
		if notes := table.StatusNotes(statuses, c.Now(), command.ColumnsOf(c.Out)); len(notes) > 0 {
			output.Println(c.Out)
			for _, line := range notes {
				output.Println(c.Out, line)
			}
		}
		if len(args) == 0 {
			return nil
		}
		resp, err := client.ListResourcesWithResponse(ctx, args[0])
		if err != nil {
			return err
		}
		resources, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		output.Println(c.Out)
		return command.PrintList(c.CLI, resources.Items, table.Resource(c.Now()))
	})
	return cmd
}
