package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/names"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/visible"
)

func (c *cli) workflowsCommand() *cobra.Command {
	var install, state string
	list := &cobra.Command{Use: "list", Short: "List workflows, newest first", Args: command.Exactly()}
	limit := command.LimitFlag(list)
	list.Flags().StringVar(&install, "install", "", "only for this install")
	list.Flags().Var(usage.OneOf(&state, ctlapi.WorkflowStateQueued, ctlapi.WorkflowStateRunning, ctlapi.WorkflowStateWaiting,
		ctlapi.WorkflowStateSucceeded, ctlapi.WorkflowStateFailed, ctlapi.WorkflowStateCancelled), "state", "only in this state: queued, running, waiting, succeeded, failed, cancelled")
	list.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		items, err := client.Workflows(ctx, *limit, ctlapi.ListWorkflowsParams{
			Install: api.Optional(install), State: api.Optional(ctlapi.WorkflowState(state)),
		})
		if err != nil {
			return err
		}
		return command.PrintList(c.CLI, items, table.Workflow(c.Now()))
	})
	show := &cobra.Command{Use: "show WORKFLOW | INSTALL", Short: "Show a workflow with its steps", Args: command.Exactly("WORKFLOW or INSTALL")}
	show.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		id, err := names.Book{Client: client}.Workflow(ctx, args[0])
		if err != nil {
			return err
		}
		w, err := client.Workflow(ctx, id)
		if err != nil {
			return err
		}
		return c.printWorkflow(w)
	})
	return command.Noun("workflows", "workflow", "Deploys and other work on installs, step by step", list, show, c.workflowsWatch(), c.workflowsCancel())
}

func (c *cli) workflowsWatch() *cobra.Command {
	var how watching
	cmd := &cobra.Command{
		Use: "watch WORKFLOW | INSTALL", Short: "Follow a workflow until it finishes or needs a decision", Args: command.Exactly("WORKFLOW or INSTALL"),
		Long: "Of an install it follows the workflow that is open or, when none is, shows the newest.",
	}
	cmd.Flags().BoolVar(&how.autoApprove, "auto-approve", false, "approve each change as shown, without asking")
	how.timeoutFlag(cmd)
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		id, err := names.Book{Client: client}.Workflow(ctx, args[0])
		if err != nil {
			return err
		}
		return c.watch(ctx, client, id, how)
	})
	return cmd
}

func (c *cli) workflowsCancel() *cobra.Command {
	cmd := &cobra.Command{
		Use: "cancel WORKFLOW | INSTALL", Short: "Cancel a workflow: start nothing more and stop at the next safe point",
		Args: command.Exactly("WORKFLOW or INSTALL"), Long: "Of an install it cancels the workflow that is open, and lists them if there are several.",
	}
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		id, err := names.Book{Client: client}.Workflow(ctx, args[0])
		if err != nil {
			return err
		}
		resp, err := client.CancelWorkflowWithResponse(ctx, id, &ctlapi.CancelWorkflowParams{})
		if err != nil {
			return err
		}
		w, err := api.Body(resp.JSON202)
		if err != nil {
			return err
		}
		switch {
		case !follow.Finished(w.State):
			output.Printf(c.Err, "cancelling: nothing more is started, and what runs stops at its next safe point; follow it with berth workflows watch %s\n", w.ID)
		case w.State != ctlapi.WorkflowStateCancelled:
			output.Printf(c.Err, "nothing to cancel: the workflow has %s\n", w.State)
		}
		return c.printWorkflow(w)
	})
	return cmd
}

// printWorkflow prints one, for people as a tree, and below it why steps failed.
func (c *cli) printWorkflow(w *ctlapi.Workflow) error {
	if c.ForPrograms() {
		return command.PrintOne(c.CLI, *w, table.Workflow(c.Now()))
	}
	screen := follow.Screen{W: c.Out, Columns: command.ColumnsOf(c.Out)}
	screen.Fold(follow.Tree(*w, c.Now(), c.ColorOn(c.Out))...)
	screen.Fold(follow.Failures(*w)...)
	if t := w.Trace; t != nil {
		where := "trace " + t.ID
		if t.URL != nil {
			where = "trace: " + *t.URL
		}
		screen.Fold(visible.Row(where))
	}
	return nil
}
