package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
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
		Args: exactly("[INSTALL]"),
	}
	cmd.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
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
		if err := printList(c, statuses, table.Status(c.now())); err != nil || c.forPrograms() {
			return err
		}
		if notes := table.StatusNotes(statuses, c.now(), columnsOf(c.out)); len(notes) > 0 {
			output.Println(c.out)
			for _, line := range notes {
				output.Println(c.out, line)
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
		output.Println(c.out)
		return printList(c, resources.Items, table.Resource(c.now()))
	})
	return cmd
}
