package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// installStatus is an install with the workflow that is at work in it.
type installStatus struct {
	ctlapi.Install
	Workflow *ctlapi.Workflow `json:"workflow,omitempty"`
}

func (c *cli) statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "status [INSTALL]", Short: "Show my installs: health, release, what is at work and what waits",
		Args: exactly("[INSTALL]"),
	}
	cmd.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		var installs []ctlapi.Install
		if len(args) > 0 {
			install, err := getInstall(ctx, client, args[0])
			if err != nil {
				return err
			}
			installs = append(installs, *install)
		} else {
			var err error
			if installs, err = listInstalls(ctx, client, 0, ctlapi.ListInstallsParams{}); err != nil {
				return err
			}
		}
		statuses := make([]installStatus, len(installs))
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
		return printList(c, statuses, c.statusView())
	})
	return cmd
}

func (c *cli) statusView() output.View[installStatus] {
	return output.View[installStatus]{
		Name: func(s installStatus) string { return s.Name },
		None: "no installs yet: berth installs create makes one",
		Columns: []output.Column[installStatus]{
			{Head: "INSTALL", Cell: func(s installStatus) string { return s.Name }},
			{Head: "APP", Cell: func(s installStatus) string { return s.App.Name }},
			{Head: "CUSTOMER", Wide: true, Cell: func(s installStatus) string { return s.Customer.Name }},
			{Head: "STATE", Cell: func(s installStatus) string { return string(s.State) }},
			{Head: "HEALTH", Cell: func(s installStatus) string { return healthOf(s.Install) }},
			{Head: "RELEASE", Cell: func(s installStatus) string { return number(s.Release) }},
			{Head: "WORKFLOW", Cell: func(s installStatus) string {
				if s.Workflow == nil {
					return ""
				}
				return string(s.Workflow.Kind) + " " + string(s.Workflow.State)
			}},
			{Head: "WAITS FOR", Cell: func(s installStatus) string {
				if s.Workflow == nil || s.Workflow.Wait == nil {
					return ""
				}
				return s.Workflow.Wait.Reason
			}},
			{Head: "WORKFLOW ID", Wide: true, Cell: func(s installStatus) string { return value(s.WorkflowID) }},
		},
	}
}
