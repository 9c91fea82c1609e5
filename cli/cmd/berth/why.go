package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/names"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) whyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "why INSTALL | WORKFLOW", Short: "Explain what is blocking an install",
		Args: command.Exactly("INSTALL or WORKFLOW"),
	}
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		book := names.Book{Client: client}
		var why *ctlapi.Why
		if strings.HasPrefix(args[0], "wfl_") {
			workflow, err := book.Workflow(ctx, args[0])
			if err != nil {
				return err
			}
			resp, err := client.WhyWorkflowWithResponse(ctx, workflow)
			if err != nil {
				return err
			}
			if why, err = api.Body(resp.JSON200); err != nil {
				return err
			}
		} else {
			install, err := book.Install(ctx, args[0])
			if err != nil {
				return err
			}
			resp, err := client.WhyInstallWithResponse(ctx, install.ID)
			if err != nil {
				return err
			}
			if why, err = api.Body(resp.JSON200); err != nil {
				return err
			}
		}
		if c.ForPrograms() {
			return command.PrintOne(c.CLI, *why, output.View[ctlapi.Why]{Name: func(w ctlapi.Why) string { return w.Summary }})
		}
		c.printWhy(why)
		return nil
	})
	return cmd
}

func (c *cli) printWhy(why *ctlapi.Why) {
	show := func(text, indent string) {
		for _, line := range output.Wrap(text, command.ColumnsOf(c.Out), indent) {
			output.Println(c.Out, line)
		}
	}
	show(why.Summary, "  ") // says all of it when there is one thing only
	for _, item := range why.Items {
		line := "- " + item.What + ": " + item.Reason
		switch on := api.Value(item.On); on {
		case "", "operator", "nobody": // the command below is for the reader
		default:
			line += "; waits for " + on
		}
		if item.Deadline != nil {
			line += ", until " + item.Deadline.Local().Format("2006-01-02 15:04")
		}
		if len(why.Items) > 1 || item.Deadline != nil {
			show(line, "  ")
		}
		if unblock := api.Value(item.Unblock); unblock != "" {
			output.Println(c.Out, "  try: "+unblock)
		}
	}
}
