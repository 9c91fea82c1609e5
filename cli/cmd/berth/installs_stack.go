package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/handout"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/enrolcode"
)

func (c *cli) installsStack() *cobra.Command {
	var fresh, replaces bool
	cmd := &cobra.Command{
		Use:   "stack INSTALL",
		Short: "Show an install's stack, or create a code for the customer",
		Long: `Shows the stack: whether the customer has applied it, and which runner it has. --new
creates a code and prints the commands that the customer runs with it: a check, and the
manifest for their cluster. Berth shows the code once, and it replaces the previous code.
If the install already has a runner, --replaces confirms that this runner is gone;
Berth then treats whatever it was doing as uncertain.`,
		Args: command.Exactly("INSTALL"),
	}
	cmd.Flags().BoolVar(&fresh, "new", false, "create a code and print the commands for the customer")
	cmd.Flags().BoolVar(&replaces, "replaces", false, "with --new: confirm that the previous runner is gone")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		switch {
		case replaces && !fresh:
			return usage.Errorf("--replaces needs --new")
		case fresh:
			return c.printCode(ctx, client, args[0], replaces)
		}
		resp, err := client.GetStackWithResponse(ctx, args[0])
		if err != nil {
			return err
		}
		stack, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		return command.PrintOne(c.CLI, *stack, table.Stack(c.Now()))
	})
	return cmd
}

// printCode makes a code and prints the commands, to be run as they are.
func (c *cli) printCode(ctx context.Context, client *api.Client, install string, replaces bool) error {
	resp, err := client.CreateStackVersionWithResponse(ctx, install, &ctlapi.CreateStackVersionParams{}, ctlapi.EnrolmentRequest{Replaces: replaces})
	if err != nil {
		return err
	}
	made, err := api.Body(resp.JSON201)
	if err != nil {
		return err
	}
	if c.ForPrograms() {
		return command.PrintOne(c.CLI, *made, output.View[ctlapi.StackCode]{Name: func(s ctlapi.StackCode) string { return s.ID }})
	}
	code, err := enrolcode.Parse(made.Code)
	if err != nil {
		return err
	}
	return handout.Print(c.Out, code, *made)
}
