package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) workflowsCommand() *cobra.Command {
	var install, state string
	list := &cobra.Command{Use: "list", Short: "List workflows, newest first", Args: exactly()}
	limit := limitFlag(list)
	list.Flags().StringVar(&install, "install", "", "only for this install")
	list.Flags().Var(usage.OneOf(&state, ctlapi.WorkflowStateQueued, ctlapi.WorkflowStateRunning, ctlapi.WorkflowStateWaiting,
		ctlapi.WorkflowStateSucceeded, ctlapi.WorkflowStateFailed, ctlapi.WorkflowStateCancelled), "state", "only in this state: queued, running, waiting, succeeded, failed, cancelled")
	list.RunE = c.call(func(ctx context.Context, client *api.Client, _ []string) error {
		items, err := client.Workflows(ctx, *limit, ctlapi.ListWorkflowsParams{
			Install: optional(install), State: optional(ctlapi.WorkflowState(state)),
		})
		if err != nil {
			return err
		}
		return printList(c, items, table.Workflow(c.now()))
	})
	show := &cobra.Command{Use: "show WORKFLOW", Short: "Show a workflow with its steps", Args: exactly("WORKFLOW")}
	show.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		w, err := client.Workflow(ctx, args[0])
		if err != nil {
			return err
		}
		return c.printWorkflow(w)
	})
	var how watching
	watch := &cobra.Command{Use: "watch WORKFLOW", Short: "Follow a workflow until it finishes or needs a decision", Args: exactly("WORKFLOW")}
	watch.Flags().BoolVar(&how.autoApprove, "auto-approve", false, "approve each change as shown, without asking")
	how.timeoutFlag(watch)
	watch.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		return c.watch(ctx, client, args[0], how)
	})
	cancel := &cobra.Command{Use: "cancel WORKFLOW", Short: "Cancel a workflow: start nothing more and stop at the next safe point", Args: exactly("WORKFLOW")}
	cancel.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.CancelWorkflowWithResponse(ctx, args[0], &ctlapi.CancelWorkflowParams{})
		if err != nil {
			return err
		}
		w, err := api.Body(resp.JSON202)
		if err != nil {
			return err
		}
		if follow.Finished(w.State) && w.State != ctlapi.WorkflowStateCancelled {
			output.Printf(c.err, "nothing to cancel: the workflow has %s\n", w.State)
		}
		return c.printWorkflow(w)
	})
	return noun("workflows", "workflow", "Deploys and other work on installs, step by step", list, show, watch, cancel)
}

// printWorkflow prints one, for people as a tree.
func (c *cli) printWorkflow(w *ctlapi.Workflow) error {
	if c.forPrograms() {
		return printOne(c, *w, table.Workflow(c.now()))
	}
	screen := follow.Screen{W: c.out}
	screen.Print(follow.Tree(*w, c.now(), c.colorOn(c.out))...)
	return nil
}
