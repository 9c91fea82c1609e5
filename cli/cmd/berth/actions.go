package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) actionsCommand() *cobra.Command {
	list := &cobra.Command{Use: "list INSTALL", Short: "List the actions of an install", Args: command.Exactly("INSTALL")}
	list.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.ListActionsWithResponse(ctx, args[0])
		if err != nil {
			return err
		}
		page, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		return command.PrintList(c.CLI, page.Items, table.Action(c.Now()))
	})
	return command.Noun("actions", "action", "Scripts that run in installs, health checks among them", list, c.actionsRun(), c.actionsRunScript(), c.actionsRuns(), c.actionsShow())
}

func (c *cli) actionsRun() *cobra.Command {
	var how watching
	var inputs []string
	var role string
	cmd := &cobra.Command{
		Use: "run INSTALL ACTION", Short: "Run an action", Args: command.Exactly("INSTALL", "ACTION"),
		Long: "A health check runs at once. Any other action is a change: you see it and decide on it\nbefore it runs.",
	}
	cmd.Flags().StringArrayVarP(&inputs, "input", "i", nil, "an input of the action, name=value")
	roleFlag(cmd, &role)
	how.flags(cmd)
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		values, err := usage.Pairs[map[string]string]("--input", inputs)
		if err != nil {
			return err
		}
		resp, err := client.RunActionWithResponse(ctx, args[0], args[1], &ctlapi.RunActionParams{}, ctlapi.ActionRunRequest{Inputs: values, Role: role})
		if err != nil {
			return err
		}
		w, err := api.Body(resp.JSON202)
		if err != nil {
			return err
		}
		return c.started(ctx, client, w, how)
	})
	return cmd
}

func (c *cli) actionsRuns() *cobra.Command {
	var install, action string
	cmd := &cobra.Command{Use: "runs", Short: "List runs of actions, newest first", Args: command.Exactly()}
	limit := command.LimitFlag(cmd)
	cmd.Flags().StringVar(&install, "install", "", "only for this install")
	cmd.Flags().StringVar(&action, "action", "", "only for this action")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		items, err := client.Runs(ctx, *limit, ctlapi.ListActionRunsParams{Install: api.Optional(install), Action: api.Optional(action)})
		if err != nil {
			return err
		}
		return command.PrintList(c.CLI, items, table.ActionRun(c.Now()))
	})
	return cmd
}

func (c *cli) actionsShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show RUN", Short: "Show a run, with its outputs and the numbers that it wrote", Args: command.Exactly("RUN"),
		Long: "Shows one run of an action; berth actions runs lists them. Its log is berth logs RUN.",
	}
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.GetActionRunWithResponse(ctx, args[0])
		if err != nil {
			return err
		}
		run, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		if err := command.PrintOne(c.CLI, *run, table.ActionRun(c.Now())); err != nil || c.ForPrograms() {
			return err
		}
		if lines := outputLines(*run); len(lines) > 0 {
			output.Printf(c.Out, "\noutputs\n")
			for _, line := range lines {
				output.Println(c.Out, line)
			}
		}
		if run.Metrics == nil {
			return nil
		}
		output.Println(c.Out)
		return command.PrintList(c.CLI, *run.Metrics, table.RunMetric())
	})
	return cmd
}
