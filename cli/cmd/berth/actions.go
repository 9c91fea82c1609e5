package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) actionsCommand() *cobra.Command {
	list := &cobra.Command{Use: "list INSTALL", Short: "List the actions of an install", Args: exactly("INSTALL")}
	list.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.ListActionsWithResponse(ctx, args[0])
		if err != nil {
			return err
		}
		page, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		return printList(c, page.Items, c.actionView())
	})
	return noun("actions", "action", "Scripts that run in installs: checks and others", list, c.actionsRun(), c.actionsRuns())
}

func (c *cli) actionsRun() *cobra.Command {
	var how watching
	var inputs []string
	cmd := &cobra.Command{
		Use: "run INSTALL ACTION", Short: "Run an action", Args: exactly("INSTALL", "ACTION"),
		Long: "A check runs at once; any other action is a change, which is shown and decided on.",
	}
	cmd.Flags().StringArrayVarP(&inputs, "input", "i", nil, "an input of the action, name=value")
	how.flags(cmd)
	cmd.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		values, err := pairs[map[string]string]("--input", inputs)
		if err != nil {
			return err
		}
		resp, err := client.RunActionWithResponse(ctx, args[0], args[1], &ctlapi.RunActionParams{}, ctlapi.ActionRunRequest{Inputs: values})
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
	cmd := &cobra.Command{Use: "runs", Short: "List runs of actions, newest first", Args: exactly()}
	limit := limitFlag(cmd)
	cmd.Flags().StringVar(&install, "install", "", "only of this install")
	cmd.Flags().StringVar(&action, "action", "", "only of this action")
	cmd.RunE = c.call(func(ctx context.Context, client *api.Client, _ []string) error {
		items, err := client.Runs(ctx, *limit, install, action)
		if err != nil {
			return err
		}
		return printList(c, items, c.actionRunView())
	})
	return cmd
}

func (c *cli) actionView() output.View[ctlapi.Action] {
	return output.View[ctlapi.Action]{
		Name: func(a ctlapi.Action) string { return a.Name },
		None: "the app has no actions",
		Columns: []output.Column[ctlapi.Action]{
			{Head: "NAME", Cell: func(a ctlapi.Action) string { return a.Name }},
			{Head: "KIND", Cell: func(a ctlapi.Action) string {
				if a.HealthCheck {
					return "health check"
				}
				return "script"
			}},
			{Head: "TRIGGERS", Cell: func(a ctlapi.Action) string {
				var triggers []string
				for _, t := range a.Triggers {
					triggers = append(triggers, strings.TrimSpace(t.Type+" "+value(t.CronSchedule)+value(t.Component)))
				}
				return strings.Join(triggers, ", ")
			}},
			{Head: "LAST RUN", Cell: func(a ctlapi.Action) string { return string(value(a.LastRun).State) }},
			{Head: "AGE", Cell: func(a ctlapi.Action) string {
				if a.LastRun == nil {
					return ""
				}
				return c.age(a.LastRun.CreatedAt)
			}},
			{Head: "DESCRIPTION", Wide: true, Cell: func(a ctlapi.Action) string { return a.Description }},
		},
	}
}

func (c *cli) actionRunView() output.View[ctlapi.ActionRun] {
	return output.View[ctlapi.ActionRun]{
		Name: func(r ctlapi.ActionRun) string { return r.ID },
		None: "no runs",
		Columns: []output.Column[ctlapi.ActionRun]{
			{Head: "ID", Cell: func(r ctlapi.ActionRun) string { return r.ID }},
			{Head: "INSTALL", Cell: func(r ctlapi.ActionRun) string { return r.Install.Name }},
			{Head: "ACTION", Cell: func(r ctlapi.ActionRun) string { return r.Action }},
			{Head: "TRIGGER", Cell: func(r ctlapi.ActionRun) string { return r.Trigger }},
			{Head: "STATE", Cell: func(r ctlapi.ActionRun) string { return string(r.State) }},
			{Head: "AGE", Cell: func(r ctlapi.ActionRun) string { return c.age(r.CreatedAt) }},
			{Head: "STREAM", Wide: true, Cell: func(r ctlapi.ActionRun) string { return value(r.StreamID) }},
			{Head: "ERROR", Wide: true, Cell: func(r ctlapi.ActionRun) string { return value(r.Error) }},
		},
	}
}
